"""Hosts that a plan does not know: where it says that they may send, no loop is closed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import TypeVar

import numpy as np
import pytest

from sar_agent.check import check_and_prove, check_routes, senders_proved
from sar_agent.check.transition import Way, examine
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from tests.examples import share
from tests.worlds.lane_choices import laid_by
from tests.worlds.mixtures import enumerated
from tests.worlds.table_pairs import drawn, redrawn, small

NEW = 1 << 62


def rebuilt(fabric: Fabric, new: np.ndarray | None = None, off: int = -1) -> Fabric:
    """The live part of a fabric, with a host more at each of the switches `new` (bool[S]),
    where those that were down are back, too, and without those at switch `off`."""
    builder = FabricBuilder("rebuilt")
    for s in range(fabric.switches):
        ports = int(fabric.switch_ports[s]) + 1
        builder.add_switch(int(fabric.switch_guid[s]), fabric.switch_name[s], ports)
    back = fabric.terminal_up | (False if new is None else new[fabric.terminal_switch])
    for t in np.flatnonzero(back & (fabric.terminal_switch != off)):
        guid, host = int(fabric.terminal_guid[t]), fabric.terminal_host[t]
        at = int(fabric.terminal_switch[t]), int(fabric.terminal_switch_port[t])
        builder.add_terminal(guid, f"{host} HCA-1", host, *at)
    for s in np.flatnonzero(new) if new is not None else ():
        port = free_port(fabric, int(s))
        builder.add_terminal(NEW + int(s), f"new{s} HCA-1", f"new{s}", int(s), port)
    for c in np.flatnonzero(fabric.channel_up):
        r = int(fabric.channel_reverse[c])
        if c < r:
            near = int(fabric.channel_source[c]), int(fabric.channel_port[c])
            builder.add_link(*near, int(fabric.channel_source[r]), int(fabric.channel_port[r]))
    return builder.build()


def free_port(fabric: Fabric, switch: int) -> int:
    """One that has no cable, else one that the switch does not have."""
    used = set(fabric.channel_port[fabric.channel_source == switch].tolist())
    used |= set(fabric.terminal_switch_port[fabric.terminal_switch == switch].tolist())
    return min(set(range(1, int(fabric.switch_ports[switch]) + 2)) - used)


def with_newcomers(fabric: Fabric, new: np.ndarray, *plans: Routes) -> tuple[Fabric, list[Routes]]:
    """The fabric with a host more at each of the switches `new`, and how plans lead to them."""
    fuller = rebuilt(fabric, new)
    rows = {int(guid): t for t, guid in enumerate(fabric.terminal_guid)}
    rows |= {NEW + s: fabric.terminals + s for s in range(fabric.switches)}
    order = [rows[int(guid)] for guid in fuller.terminal_guid]
    order += range(fabric.terminals, fabric.destinations)
    found = []
    for routes in plans:
        egress, levels, lanes = routes.egress[:, order], routes.service_level, routes.hop_lane
        for t in np.flatnonzero(fuller.terminal_guid >= NEW):
            egress[:, t, fuller.terminal_switch[t]] = fuller.terminal_switch_port[t]
        if levels is not None:
            levels = levels[:, order]
        if lanes is not None:
            more = int(fuller.switch_ports.max()) + 1 - lanes.shape[1]
            lanes = np.pad(lanes, ((0, 0), (0, more), (0, more)))
        found.append(
            replace(
                routes,
                fabric_digest=fuller.digest,
                egress=egress,
                service_level=levels,
                hop_lane=lanes,
                senders=None,
            )
        )
    return fuller, found


T = TypeVar("T")
TREES = [
    ("xgft:3;2,2,3;1,2,2", "dfsssp"),
    ("xgft:3;3,3,3;1,2,2", "sar-plus"),
    ("xgft:2;4,6;1,3", "minhop"),
]


def senders(fabric: Fabric, routes: Routes) -> np.ndarray:
    proved = check_and_prove(fabric, routes).proved
    assert proved
    return senders_proved(fabric, routes, proved)


def seeds_until(most: int, look: Callable[[int], Counter[T]], wanted: set[T]) -> Counter[T]:
    """What `look` counts with the share of `most` seeds that is to be tried, and with more of them
    until all that is `wanted` was seen."""
    seen = Counter[T]()
    for seed in range(most):
        if seed >= share(most) and all(seen[kind] for kind in wanted):
            break
        seen += look(seed)
    return seen


def sound_with(fabric: Fabric, routes: Routes, new: np.ndarray) -> bool:
    """Whether hosts at all the switches `new` that `routes` do not know close no credit loop."""
    fuller, (plan,) = with_newcomers(fabric, new, routes)
    verdict = check_routes(fuller, plan)
    assert not verdict.unreachable_pairs
    return verdict.passed


def broken(spec: str, random: Random) -> Fabric:
    """With up to five cables dead, and sometimes a leaf whose hosts are all off."""
    whole = load_fabric(spec)
    cables = np.flatnonzero(np.arange(whole.channels) < whole.channel_reverse)
    dead = random.sample(cables.tolist(), random.randint(0, 5))
    return rebuilt(whole.with_links_down(dead), off=random.choice([-1, *whole.leaves.tolist()]))


def one_by_one(spec: str, engine: str, seed: int) -> Counter[tuple[bool, bool]]:
    """Asserts that all who may send close no loop together; how often (one alone closes none, it
    may send)."""
    fabric, seen = broken(spec, Random(seed)), Counter[tuple[bool, bool]]()
    try:
        routes = load_engine(engine).route(fabric, JobMix(()), Options())
    except SarError:  # in more pieces than one
        return seen
    if not check_routes(fabric, routes).passed:
        return seen
    may = senders(fabric, routes)
    assert sound_with(fabric, routes, may)
    if check_routes(fabric, routes).deadlock_free_everyone and fabric.terminal_up.all():
        assert (may == (fabric.terminals_at > 0)).all()
    for s in range(fabric.switches):
        alone = sound_with(fabric, routes, np.arange(fabric.switches) == s)
        assert alone or not may[s]
        seen[alone, bool(may[s])] += 1
    return seen


@pytest.mark.parametrize(("spec", "engine"), TREES)
def test_new_hosts_close_no_loop_where_a_plan_says_so(spec: str, engine: str) -> None:
    seen = seeds_until(20, lambda seed: one_by_one(spec, engine, seed), {(False, False)})
    assert seen[False, False] > 0, "where they would, they may not"
    assert seen[True, True] > 0, "where everyone may send, they may"


@pytest.mark.parametrize("spec", ["xgft:2;4,6;1,3", "torus:4x4,hosts=1"])
def test_where_all_may_send_all_are_told(spec: str) -> None:
    fabric = load_fabric(spec)
    routes = load_engine("updn").route(fabric, JobMix(()), Options())
    hosts = fabric.terminals_at > 0
    assert (senders(fabric, routes) == hosts).all()
    some = np.arange(fabric.switches) % 2 > 0
    assert (senders(fabric, replace(routes, senders=some)) == hosts & some).all()
    dead = fabric.with_links_down([], [0])
    routes = load_engine("updn").route(dead, JobMix(()), Options())
    elsewhere = np.arange(fabric.switches) != fabric.terminal_switch[0]
    assert (senders(dead, routes) == hosts & elsewhere).all(), "the port of a host that is down"


def with_senders(fabric: Fabric, random: Random) -> Routes | None:
    """Random trees that pass the check, in one lane or two, with the senders proved."""
    routes = drawn(fabric, random, random.choice([1, 1, 2]))
    return routes and replace(routes, senders=senders(fabric, routes))


def mixed(seed: int) -> Counter[str]:
    """Asserts that no mixture on the way from plan to plan harms hosts that boot meanwhile where
    both let them; what was seen."""
    random, seen = Random(seed), Counter[str]()
    fabric = small(random, 6, hosts_everywhere=False)
    before, after = with_senders(fabric, random), with_senders(fabric, random)
    if not (before and after):
        return seen
    assert before.senders is not None and after.senders is not None
    assert sound_with(fabric, after, after.senders)
    found = examine(fabric, before, after)
    seen[found.way.value] += 1
    for old, new in pairwise((before, *found.stages)):
        assert old.senders is not None and new.senders is not None
        both = old.senders & new.senders
        fuller, (was, becomes) = with_newcomers(fabric, both, old, new)
        if found.proved:
            assert check_routes(fuller, becomes).passed
            assert enumerated(fuller, was, becomes) == ""
            seen["newcomers"] += np.count_nonzero(both)
    if found.stages:
        last = found.stages[-1].senders
        assert last is not None and not (last & ~after.senders).any()
        fewer = (after.senders & ~last).any()
        seen["fewer"] += fewer
        if found.way is Way.DIRECT and fewer:  # for a reason
            fuller, (was, becomes) = with_newcomers(
                fabric, before.senders & after.senders, before, after
            )
            assert enumerated(fuller, was, becomes)
    return seen


def test_hosts_that_boot_while_tables_change_close_no_loop() -> None:
    wanted = {"direct", "staged", "newcomers", "fewer"}
    seen = seeds_until(150, mixed, wanted)
    assert min(seen[kind] for kind in wanted) > 0, seen


@pytest.mark.parametrize("kind", ["hop", "path"])
@pytest.mark.parametrize("seed", range(6))
def test_fabrics_that_need_lanes(kind: str, seed: int) -> None:
    """A ring of which a host is down, whose trees are drawn anew as long as the lanes suffice."""
    random = Random(seed)
    fabric = load_fabric("torus:6,hosts=1").with_links_down([], [random.randrange(6)])
    before = laid_by(kind, fabric, JobMix(()))
    assert before.virtual_lanes == 2 and (before.hop_lane is not None) == (kind == "hop")
    after = redrawn(before, fabric, random)
    one, two = (replace(r, senders=senders(fabric, r)) for r in (before, after))
    assert (
        one.senders is not None
        and two.senders is not None
        and one.senders.any() == (kind == "path")
    )
    assert sound_with(fabric, one, one.senders) and sound_with(fabric, two, two.senders)
    assert examine(fabric, one, one).way is Way.SAME
    found = examine(fabric, one, two)
    for old, new in pairwise((one, *found.stages)):
        assert old.senders is not None and new.senders is not None and found.proved
        fuller, (was, becomes) = with_newcomers(fabric, old.senders & new.senders, old, new)
        assert enumerated(fuller, was, becomes) == ""
