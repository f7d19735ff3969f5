"""The box on the live page: bad cables with their jobs, and the links that lose most."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from sar_agent.fabric.model import F64
from sar_agent.quality.worst_links import jobs_over
from sar_agent.reports.page_box import PageBox
from sar_agent.reports.site_dumps import SiteDumps
from sar_agent.reports.wording import moment, some
from sar_agent.services.cable_watch.watch import BadCable, Kind
from sar_agent.util.plural import plural

SHOWN, SHOWN_UNLIKE, SHOWN_LOST, SHOWN_JOBS, SHOWN_LOSERS = 30, 5, 5, 5, 3
LEAST_LOST = 0.01
"""Share of a link's speed below which what it lost is not listed."""
_ORDER: tuple[Kind, ...] = ("missing", "flapping", "errors", "degraded", "unlike")


def cable_box(
    bad: Mapping[tuple[Kind, str], BadCable],
    dumps: SiteDumps,
    lost: F64 | None,
    lost_of_jobs: Mapping[str, float],
    source: str,
    read_at: float,
    notes: Collection[str] = (),
) -> PageBox:
    """Those with jobs first, then by kind. `lost` is Gbit/s by channel (float64[C]),
    `lost_of_jobs` by job (`lost_by_job`)."""
    ordered = sorted(
        bad.values(), key=lambda c: (c.kind == "unlike", not c.jobs, _ORDER.index(c.kind), c.since)
    )
    new = sum(cable.kind != "unlike" for cable in ordered)
    shown = ordered[: min(SHOWN, new + SHOWN_UNLIKE)]
    rows: list[tuple[str, ...]] = [
        (cable.sentence, cable.kind, moment(cable.since), _jobs(cable.jobs)) for cable in shown
    ]
    if len(ordered) > len(shown):
        rows.append((f"and {len(ordered) - len(shown)} more: sar-agent cables", "", "", ""))
    if lost is not None:
        rows += _lost_rows(dumps, lost) + _job_rows(lost_of_jobs)
    if not source:
        counted = "No counters are read (watch.counters), so errors and waits are not seen."
    elif not read_at:
        counted = f"No window of counters from {source} yet."
    else:
        counted = f"Counters until {moment(read_at)}."
    more = "".join(f" {note}." for note in list(notes)[:2])
    head = f"Cables: {new} bad" if new else "Cables: none bad"
    # Of links that are down, and what that changes, the page has a sentence already.
    hurt = [cable for cable in ordered if cable.jobs and cable.kind in ("errors", "flapping")]
    wrong = ""
    if hurt:
        others = f"; {plural(len(hurt) - 1, 'more cable')} with errors, too" if hurt[1:] else ""
        jobs = some(hurt[0].jobs, SHOWN_JOBS)
        wrong = f"{hurt[0].sentence}, under job{'s' * (len(hurt[0].jobs) > 1)} {jobs}{others}"
    columns = ("cable", "kind", "since", "jobs over it now")
    return PageBox(head, columns, tuple(rows), counted + more, wrong)


def _lost_rows(dumps: SiteDumps, lost: F64) -> list[tuple[str, ...]]:
    rate, name = dumps.fabric.channel_rate, dumps.fabric.channel_name
    worst = np.argsort(-np.nan_to_num(lost), kind="stable")[:SHOWN_LOST].tolist()
    return [
        (
            f"{name(c)} loses {lost[c]:.1f} Gbit/s of {rate[c]:.0f} by waiting",
            "waits",
            "",
            _jobs(tuple(jobs_over(dumps.traffic, c))),
        )
        for c in worst
        if lost[c] >= LEAST_LOST * rate[c] > 0
    ]


def lost_by_job(dumps: SiteDumps, lost: F64) -> dict[str, float]:
    """Gbit/s that the links of each job lost together; a link of several jobs counts for each."""
    known = np.nan_to_num(lost)
    return {
        job.id: float(known[dumps.traffic.links_of(dumps.mix.parts_of(job.id))].sum())
        for job in dumps.mix.whole_jobs
    }


def _job_rows(lost: Mapping[str, float]) -> list[tuple[str, ...]]:
    worst = sorted(lost.items(), key=lambda one: -one[1])[:SHOWN_LOSERS]
    return [
        (f"all links of job {job} together lose {gbits:.1f} Gbit/s by waiting", "waits", "", job)
        for job, gbits in worst
        if gbits >= 0.1
    ]


def _jobs(jobs: Sequence[str]) -> str:
    return some(jobs, SHOWN_JOBS) if jobs else "none"
