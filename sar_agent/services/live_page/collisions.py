"""Which jobs' messages meet now, by pattern: whose ring waits where, for whom, and what the planned
tables would give. Computed when somebody looks."""

from __future__ import annotations

import numpy as np

from sar_agent.demand.collectives import AT_ONCE, COLLECTIVES, RING
from sar_agent.fabric.model import F64
from sar_agent.quality.channel_traffic import Traffic
from sar_agent.quality.measures import MEETS
from sar_agent.quality.ring_messages import meeting_of, ring_messages
from sar_agent.reports.page_box import PageBox
from sar_agent.reports.wording import some
from sar_agent.services.live_page.snapshot import PageSnapshot
from sar_agent.util.plural import plural

SHOWN, JOBS_SHOWN = 10, 4
COLUMNS = ("job", "ring", "worst other pattern", "its ring waits on", "with jobs")


def collisions_box(page: PageSnapshot, traffic: Traffic | None) -> PageBox | None:
    """The jobs that wait longest; None where what is in force is not known, or no job meets
    another."""
    if traffic is None or not traffic.mix.jobs:
        return None
    fabric, mix = traffic.fabric, traffic.mix
    now = times_of(traffic)
    ours, planned = dict[str, F64](), dict[str, int]()
    if page.planned:
        ours = times_of(page.planned[1])
        planned = {job.id: j for j, job in enumerate(page.planned[1].mix.whole_jobs)}
    alone = [word for word in COLLECTIVES if word != AT_ONCE]
    worst = np.max([now[word] for word in alone], axis=0)
    meeting = np.flatnonzero(worst > MEETS)
    if not len(meeting):
        return None
    order = meeting[np.lexsort((-worst[meeting], -now[RING][meeting]))]
    rings, rows = ring_messages(fabric, mix, traffic.routes), list[tuple[str, ...]]()

    def times(word: str, j: int, job: str) -> str:
        then = planned.get(job)
        said = f"{now[word][j]:.2f}"
        return said if then is None else f"{said} → {ours[word][then]:.2f}"

    for j in order[:SHOWN].tolist():
        job = mix.whole_jobs[j].id
        channel, messages = meeting_of(rings, mix.parts_of(job))
        others = dict.fromkeys(mix.jobs[int(rings.part[m])].id for m in messages)
        others.pop(job, None)
        other = max((word for word in alone if word != RING), key=lambda word: now[word][j])
        where = fabric.channel_name(channel) if channel >= 0 else "none"
        whom = some([*others], JOBS_SHOWN) or ("itself" if channel >= 0 else "none")
        rows.append((job, times(RING, j, job), f"{other} {times(other, j, job)}", where, whom))
    note = (
        f"Times as long as alone{', now → with routes for these jobs' if planned else ''}; "
        f"{len(meeting)} of {plural(len(mix.whole_jobs), 'job')} meet others in some pattern."
    )
    return PageBox("Collisions now", COLUMNS, tuple(rows), note)


def times_of(traffic: Traffic) -> dict[str, F64]:
    """float64[J] by collective: of each job, the slowest of its parts."""
    return {word: traffic.mix.largest(traffic.contention(word)) for word in COLLECTIVES}
