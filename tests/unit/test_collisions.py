"""The page's box of jobs whose messages meet: where, with whom, and what planned tables give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sar_agent.demand.collectives import RING
from sar_agent.jobs import JobMix
from sar_agent.quality import measure
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.quality.ring_messages import ring_messages
from sar_agent.routing import Options, load_engine
from sar_agent.services.live_page.collisions import collisions_box, times_of
from tests.worlds.page_snapshot import snapshot_of

PAGE = snapshot_of("xgft:2;6,8;1,6", 5)


def test_jobs_that_meet_are_named_with_the_link_the_others_and_what_planned_tables_give():
    fabric, mix, routes = PAGE.fabric, PAGE.mix, PAGE.routes
    assert fabric is not None and mix is not None and routes is not None
    traffic = traffic_of(fabric, mix, routes)
    box = collisions_box(PAGE, traffic)
    assert box is not None and box.head == "Collisions now"
    ring = times_of(traffic)[RING]
    by_job = {row[0]: row for row in box.rows}
    for j, job in enumerate(mix.whole_jobs):
        if ring[j] > 1.001:
            row = by_job[job.id]
            assert row[1] == f"{ring[j]:.2f}" and job.id not in row[4]
            c = next(c for c in range(fabric.channels) if fabric.channel_name(c) == row[3])
            rings = ring_messages(fabric, mix, routes)
            there = {mix.jobs[int(rings.part[m])].id for m in rings.on(c)}
            assert job.id in there
            named = row[4].split(" and ")[0].split(", ")
            assert set(named) <= there or named == ["itself"]
    assert (ring > 1.001).any()
    better = load_engine("sar-plus").route(fabric, mix, Options())
    measures = measure(fabric, mix, better)
    page = replace(PAGE, mode="observe", planned=(measures, measures.traffic))
    with_plan = collisions_box(page, traffic)
    assert with_plan is not None and all(" → " in row[1] for row in with_plan.rows)
    then = times_of(measures.traffic)[RING]
    first = with_plan.rows[0]
    j = [job.id for job in mix.whole_jobs].index(first[0])
    assert first[1] == f"{ring[j]:.2f} → {then[j]:.2f}" and ring[j] == np.max(ring)


def test_no_box_without_jobs_or_tables():
    assert collisions_box(PAGE, None) is None
    fabric, routes = PAGE.fabric, PAGE.routes
    assert fabric is not None and routes is not None
    assert collisions_box(PAGE, traffic_of(fabric, JobMix(()), routes)) is None
