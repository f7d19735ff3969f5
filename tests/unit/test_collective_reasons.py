"""Why an entry is an exception, and how many entries of rings moved."""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing import Options, PreviousRoutes
from sar_agent.routing.collectives.reasons import OTHERS, exceptions_of, ring_entries_moved
from sar_agent.routing.sar_plus import SarPlus
from sar_agent.routing.template import template_of


def test_an_exception_names_the_rings_that_it_keeps_apart() -> None:
    """Two rings of two hosts, from one leaf to one leaf: on the template both take one spine."""
    fabric = xgft_fabric("xgft:2;4,4;1,4")
    template = template_of(fabric).egress
    leaf = fabric.terminal_switch
    source, target = (np.flatnonzero(leaf == s).tolist() for s in (leaf[0], leaf[-1]))
    third = np.flatnonzero((leaf != leaf[0]) & (leaf != leaf[-1])).tolist()
    same = [
        d for d in third if template[d, leaf[0]] == template[target[0], leaf[0]]
    ]  # another host behind the same spine
    mix = JobMix.of(
        [make_job("4711", [source[0], target[0]]), make_job("4802", [source[1], same[0]])]
    )
    routes = SarPlus().route(fabric, mix, Options())
    egress = routes.egress[0]
    (d, s), *others = np.argwhere(egress != template).tolist()
    assert not others, "one entry is enough"
    for part in (0, 1):
        found = exceptions_of(fabric, mix, template, egress, (part,))
        assert [each[:3] for each in found] == [(s, d, egress[d, s])] * (
            d in mix.jobs[part].terminals
        )
    [each] = exceptions_of(fabric, mix, template, egress, (0, 1))
    owner, other = sorted(
        ("4711", "4802"), key=lambda id: id != ("4711" if d == target[0] else "4802")
    )
    assert each.reason == f"keeps the ring of job {owner} apart from job {other}'s"


def test_an_exception_that_no_ring_needs_says_so_and_unused_ones_are_left_out() -> None:
    fabric = xgft_fabric("xgft:2;4,4;1,4")
    template = template_of(fabric).egress
    mix = JobMix.of([make_job("1", [0, 4, 8])])
    egress = template.copy()
    leaf = fabric.terminal_switch
    first = fabric.terminals_at[leaf[0]] + 1  # ports up begin behind those of hosts
    for d, s in ((4, leaf[0]), (4, leaf[12]), (5, leaf[0])):
        egress[d, s] = first + (egress[d, s] - first + 1) % 4
    [each] = exceptions_of(fabric, mix, template, egress, (0,))
    assert each == (leaf[0], 4, egress[4, leaf[0]], OTHERS)


def test_entries_of_running_rings_that_moved_are_counted() -> None:
    fabric = xgft_fabric("xgft:2;4,4;1,4")
    first, second = make_job("1", [0, 4, 8]), make_job("2", [1, 5])
    before, after = JobMix.of([first]), JobMix.of([first, second])
    engine = SarPlus()
    old = engine.route(fabric, before, Options())
    new = engine.reroute(PreviousRoutes(fabric, before, old), fabric, after, Options())
    assert ring_entries_moved(fabric, before, after, old.egress[0], new.egress[0]) == 0
    changed = old.egress[0].copy()
    leaf = int(fabric.terminal_switch[0])
    changed[4, leaf] = (
        changed[4, leaf] % 4 + 1 + (changed[4, leaf] % 4 + 1 == old.egress[0, 4, leaf])
    )
    assert ring_entries_moved(fabric, before, after, old.egress[0], changed) == 1
    assert ring_entries_moved(fabric, before, JobMix.of([second]), old.egress[0], changed) == 0
