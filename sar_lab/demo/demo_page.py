"""The demo page: one self-contained HTML file; every number in it comes from the run."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from sar_agent.jobs.synthetic import FORMS
from sar_lab.demo import charts, drawing
from sar_lab.demo.change_text import change, count_changes
from sar_lab.demo.demo_run import Demo
from sar_lab.demo.engine_results import AFTER, BEFORE, Comparison
from sar_lab.demo.sweep import SweepPoint
from sar_lab.demo.three_jobs import HOSTS_PER_JOB, SEED
from sar_lab.page_templates import templates

JOBS_SHOWN = 30


def render_page(demo: Demo) -> str:
    """The page as HTML."""
    return (
        templates()
        .get_template("demo.html")
        .render(
            demo=demo,
            main=demo.main,
            before=demo.main.before,
            after=demo.main.after,
            small=_exhibit(demo.three_jobs),
            small_hosts=HOSTS_PER_JOB,
            small_seed=SEED,
            big=_exhibit(demo.main),
            dark=_dark_bars(demo.main),
            jobs=_job_charts(demo.main),
            sweep=_sweep_charts(demo.sweep),
            synthetic_jobs=demo.jobs_spec.startswith(FORMS),
            synthetic_fabric=demo.fabric_spec.startswith("xgft:"),
            oblivious_share=max(
                r.measures.throughput_mean for r in demo.main.results if r.engine != AFTER
            ),
            change=change,
            before_name=BEFORE,
            after_name=AFTER,
        )
    )


def render_picture(demo: Demo) -> str | None:
    """Only the heat maps, as a separate SVG; None where the fabric is too large to draw."""
    if not drawing.drawable(demo.main.fabric):
        return None
    return (
        templates()
        .get_template("before-after.svg")
        .render(
            demo=demo,
            main=demo.main,
            big=_exhibit(demo.main),
            view=drawing.WIDTH,
            before_name=BEFORE,
            after_name=AFTER,
        )
    )


def _exhibit(comparison: Comparison) -> dict[str, Any]:
    """Heat maps, their legend and the histograms; before and after use the same colours."""
    fabric, before, after = comparison.fabric, comparison.before, comparison.after
    width = drawing.bin_width(before.channel_efi, after.channel_efi)
    live = fabric.channel_up
    exhibit: dict[str, Any] = {
        "fabric": fabric,
        "before": before,
        "after": after,
        "jobs": len(comparison.mix.jobs),
        "legend": drawing.bin_names(width),
        "maps": None,
        "histograms": Markup(
            charts.histograms(
                "How many links carry how many job routes",
                [
                    (f"before ({BEFORE})", before.channel_efi[live], "before"),
                    (f"after ({AFTER})", after.channel_efi[live], "after"),
                ],
                before.lower_bound_efi_max,
            )
        ),
    }
    if drawing.drawable(fabric):
        exhibit["height"] = drawing.height(fabric)
        exhibit["rows"] = drawing.rows(fabric)
        exhibit["maps"] = [
            (name, m, Markup(drawing.draw_network(fabric, m.channel_efi, width)))
            for name, m in ((f"before: {BEFORE}", before), (f"after: {AFTER}", after))
        ]
    return exhibit


def _dark_bars(comparison: Comparison) -> dict[str, Markup]:
    styles = {AFTER: "after", BEFORE: "before"}
    named = [(r.engine, r.measures, styles.get(r.engine, "other")) for r in comparison.results]
    dark = [
        (name, m.dark_fiber_ratio, f"{m.dark_fiber_ratio:.1%}", style) for name, m, style in named
    ]
    hot = [
        (name, float(m.effective_efi_max), str(m.effective_efi_max), style)
        for name, m, style in named
    ]
    bound = comparison.before.lower_bound_efi_max
    hot.append(("minimum", float(bound), f"{bound} (lower bound)", "bounded"))
    return {
        "dark": Markup(charts.bars("Dark fiber by engine", dark)),
        "hot": Markup(charts.bars("Hottest link by engine", hot)),
    }


def _job_charts(comparison: Comparison) -> dict[str, Any]:
    """Charts of the largest jobs, and counts over all jobs."""
    pairs = list(zip(comparison.before.jobs_detail, comparison.after.jobs_detail, strict=True))
    efi = [(float(b.efi_max), float(a.efi_max)) for b, a in pairs]
    share = [(b.throughput, a.throughput) for b, a in pairs]
    fabric = comparison.fabric
    unit = "hosts" if len(fabric.hosts) == fabric.terminals else "ports"
    names = [f"{b.terminals} {unit}" for b, _ in pairs]
    shown = slice(0, JOBS_SHOWN)
    rows = [(n, *e) for n, e in zip(names[shown], efi[shown], strict=True)]
    shares = [(n, *s) for n, s in zip(names[shown], share[shown], strict=True)]
    return {
        "efi": Markup(charts.dumbbells("Hottest link on each job's routes", rows)),
        "share": Markup(charts.dumbbells("All-to-all share of each job", shares, ".1f")),
        "efi_counts": count_changes(efi),
        "share_counts": count_changes(share),
        "total": len(pairs),
        "shown": min(JOBS_SHOWN, len(pairs)),
    }


def _sweep_charts(points: tuple[SweepPoint, ...]) -> list[dict[str, Any]]:
    """A row of charts for each measure, one chart for each fabric, all on one scale."""
    measures = (
        ("dark_fiber_ratio", "Dark fiber", ".0%"),
        ("effective_efi_max", "Hottest link (routes)", ".0f"),
        ("throughput_mean", "All-to-all share, mean job", ".1f"),
    )
    fabrics = list(dict.fromkeys(p.fabric for p in points))
    rows = []
    for field, title, form in measures:
        values = [getattr(side, field) for p in points for side in (p.before, p.after)]
        top = 1.0 if field == "throughput_mean" else max([1e-9, *values]) * 1.05
        cells = []
        for fabric in fabrics:
            own = [p for p in points if p.fabric == fabric]
            series = [
                ([getattr(p.before, field) for p in own], "before"),
                ([getattr(p.after, field) for p in own], "after"),
            ]
            if field == "effective_efi_max":
                series.append(([p.bound for p in own], "bound"))
            label = f"{title} on {fabric}"
            busy = [p.busy for p in own]
            cells.append((fabric, Markup(charts.lines(label, busy, series, top, form))))
        rows.append({"title": title, "cells": cells})
    return rows
