"""The report: one self-contained HTML file; every number in it comes from the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from sar_agent.fabric import Fabric
from sar_lab.assess import charts, drawing, heat_map
from sar_lab.assess.assessment import Assessment
from sar_lab.assess.contention_chart import contention_chart
from sar_lab.assess.rate import RatedRoutes
from sar_lab.assess.tiles import contention_rows, rings_of, tiles_of
from sar_lab.assess.timeline import timeline
from sar_lab.page_templates import templates, write_page

JOBS_SHOWN = 12
TIMED = (
    "Predicted. Nothing was timed on InfiniBand. In 60 comparisons with real packets on 48 "
    "emulated hosts, the gains were 0.78 of those predicted (correlation 0.86): 0.91 for rings, "
    "0.49 for all at once."
)
"""What was timed, and where (`research/pages/emulated.md`): the sentence under the tiles."""
MOST_HOT = 3000
"""The most links in a drawing that shows overloaded links only."""


def write_assessment(assessment: Assessment, folder: Path) -> Path:
    """Writes `index.html` and `assess.json` to `folder` (created if needed); returns the page's
    path."""
    return write_page(folder, "assess.json", assessment.json(), render(assessment))


def render(assessment: Assessment) -> str:
    """The page as HTML."""
    given, ratings = assessment.given, assessment.ratings
    before, after = ratings.before, ratings.after
    return (
        templates()
        .get_template("assess.html")
        .render(
            assessment=assessment,
            given=given,
            fabric=given.fabric,
            judgement=assessment.judgement,
            ratings=ratings,
            before=before,
            after=after,
            before_said=before.name if ratings.assumed else "today’s tables",
            rows=_columns(assessment),
            gainers=assessment.gainers[:JOBS_SHOWN],
            tiles=tiles_of(assessment),
            rings=rings_of(assessment),
            timed=TIMED,
            collectives=collectives_chart(assessment),
            over_record=_over_record(assessment),
            pictures=_pictures(given.fabric, before, after) if after and given.mix.jobs else None,
            counted=_counted(assessment),
            timeline=Markup(timeline(assessment.course)) if assessment.course else None,
            classes=list(enumerate(heat_map.CLASS_NAMES)),
        )
    )


def _columns(assessment: Assessment) -> list[RatedRoutes]:
    """The engines of the table: before and after come first, since a phone shows three columns."""
    ratings = assessment.ratings
    rated = [*([] if ratings.assumed else [ratings.before]), *ratings.engines]
    first = [r.name for r in (ratings.before, ratings.after) if r]
    return sorted(rated, key=lambda r: first.index(r.name) if r.name in first else len(first))


def collectives_chart(assessment: Assessment) -> Markup | None:
    """The picture of all collectives; None without a job that spans switches."""
    rows = contention_rows(assessment)
    return Markup(contention_chart(rows)) if rows else None


def _over_record(assessment: Assessment) -> str:
    if assessment.course is None:
        return ""
    saved = (assessment.course.saved, assessment.course.phases_saved)
    at_once, phases = (f"{abs(s):.0%} {'less time' if s >= 0 else 'longer'}" for s in saved)
    return (
        f"sending would take {at_once} with all messages at once, and {phases} with one message "
        "at a time"
    )


def _pictures(fabric: Fabric, before: RatedRoutes, after: RatedRoutes) -> dict[str, Any]:
    """Everything that the template draws; before and after use the same colours."""
    sides = (("before", before), ("after", after))
    maps = []
    for word, rated in sides:
        inside, tall = heat_map.heat_map(fabric, rated.measures.channel_load)
        maps.append((word, rated, Markup(inside), round(tall)))
    bars, tall = heat_map.level_bars(fabric, *(r.measures.channel_load for _, r in sides))
    live = fabric.channel_up
    efi = [(f"{w} ({r.name})", r.measures.channel_efi[live], w) for w, r in sides]
    whole = drawing.drawable(fabric)
    drawings = []
    for word, rated in sides:
        load = rated.measures.channel_load
        kind = heat_map.load_classes(load)
        hot = np.ones(fabric.channels, np.bool_) if whole else _hottest(load)
        inside = drawing.draw_network(fabric, kind, 1, hot)
        drawings.append((word, rated, Markup(inside), int((load > 1 + heat_map.ROUNDING).sum())))
    return {
        "maps": maps,
        "bars": Markup(bars),
        "bars_height": round(tall),
        "histograms": Markup(
            charts.histograms(
                "How many links carry how many job routes",
                efi,
                before.measures.lower_bound_efi_max,
            )
        ),
        "drawings": drawings,
        "height": drawing.height(fabric),
        "whole": whole,
        "most": MOST_HOT,
        "rows": drawing.rows(fabric),
    }


def _counted(assessment: Assessment) -> dict[str, Any] | None:
    """The map of what links carried, in the colours of the loads."""
    if assessment.counted is None:
        return None
    inside, tall = heat_map.heat_map(assessment.given.fabric, assessment.counted.window.share)
    comparison = assessment.counted.comparison
    return {"map": Markup(inside), "height": round(tall), "window": comparison}


def _hottest(load: heat_map.Loads) -> np.ndarray:
    """bool[C]: the links that are more than full, at most the fullest `MOST_HOT` of them."""
    hot = load > 1 + heat_map.ROUNDING
    if hot.sum() > MOST_HOT:
        hot &= load >= np.partition(load, -MOST_HOT)[-MOST_HOT]
    return hot
