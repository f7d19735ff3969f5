"""Channel numbers against packets sent one by one, and mixtures that they prove by brute force."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.check import certificate_of, check_and_prove, senders_proved
from sar_agent.check.order import channel_numbers, dependencies_rise
from sar_agent.check.proof import ProvedTables
from sar_agent.check.transition import Transition, Way, examine
from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.components import require_connected
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from tests.examples import examples, share
from tests.worlds.histories import SHAPES, history
from tests.worlds.lane_choices import laid_by
from tests.worlds.mixtures import enumerated
from tests.worlds.networks import fabrics
from tests.worlds.oracles import path
from tests.worlds.table_pairs import random_pair, unconfirmed


def certified(fabric: Fabric, routes: Routes) -> tuple[ProvedTables, np.ndarray]:
    """The proof of routes that pass the check, and their numbers."""
    verdict, proved = check_and_prove(fabric, routes)
    assert verdict.passed and proved
    return proved, certificate_of(fabric, proved, senders_proved(fabric, routes, proved))


def rise(fabric: Fabric, routes: Routes, numbers: np.ndarray) -> bool:
    """Whether the numbers rise along the path of each pair of hosts, at each LID offset."""
    hosts = np.flatnonzero(fabric.is_host_port)
    for o in range(len(routes.egress)):
        one = replace(routes, egress=routes.egress[o : o + 1])
        for a in hosts:
            source, entry = int(fabric.terminal_switch[a]), int(fabric.terminal_switch_port[a])
            for b in hosts:
                channels = path(fabric, one, source, int(b))
                assert channels is not None
                before, enters, lane = 0, entry, 0
                if routes.service_level is not None:
                    lane = int(routes.service_level[o, b, source]) % routes.virtual_lanes
                for c in channels:
                    s, port = int(fabric.channel_source[c]), int(fabric.channel_port[c])
                    if routes.hop_lane is not None and routes.virtual_lanes > 1:
                        lane = int(routes.hop_lane[s, enters, port])
                    number = int(numbers[lane, s, port])
                    if number <= before:
                        return False
                    before, enters = number, int(fabric.channel_port[fabric.channel_reverse[c]])
    return True


def holds(fabric: Fabric, routes: Routes) -> np.ndarray:
    """Asserts that the routes have numbers: for every live channel, and rising along all paths."""
    _, numbers = certified(fabric, routes)
    assert rise(fabric, routes, numbers)
    up = fabric.channel_up & fabric.switch_up[fabric.channel_source]
    up &= fabric.switch_up[fabric.channel_target]
    at = fabric.channel_source[up], fabric.channel_port[up]
    assert (numbers[:, at[0], at[1]] > 0).all() and np.count_nonzero(numbers) == (
        len(numbers) * np.count_nonzero(up)
    )
    return numbers


@examples(100)
@given(fabrics(), st.integers(0, 2**32), SHAPES)
def test_routes_that_pass_the_check_have_numbers(
    fabric: Fabric, seed: int, shape: tuple[int, int]
) -> None:
    for broken, routes in history(fabric, Random(seed), 3, shape):
        if check_and_prove(broken, routes).proved:
            holds(broken, routes)


@examples(60)
@given(fabrics(), st.integers(0, 2**32))
def test_other_numbers_are_judged_as_packet_by_packet(fabric: Fabric, seed: int) -> None:
    routes = load_engine("updn").route(fabric, JobMix(()), Options())
    proved, numbers = certified(fabric, routes)
    random = np.random.default_rng(seed)
    assert rise(fabric, routes, numbers)
    live = np.argwhere(numbers[0] > 0)
    for _ in range(4 if len(live) else 0):
        s, p = random.choice(live)
        wrong = numbers.copy()
        wrong[0, s, p] = random.integers(0, numbers.max() + 2)
        good = rise(fabric, routes, wrong)
        # Dependencies are of pairs of channels: what they say of a path of one channel is nothing.
        found = dependencies_rise(proved.wiring, proved.counts[:1], wrong)
        assert found == good or not wrong[0, s, p]
        numbers = wrong if good else numbers


SPECS = {
    "tree": "xgft:3;2,3,2;1,2,2",
    "torus": "torus:4x3,hosts=1",
    "dragonfly": "dragonfly:a=4,p=1,h=1",
}


def less(spec: str, seed: int, cables: int) -> Fabric:
    """A fabric of `SPECS` in one piece without some of its cables."""
    whole, random = load_fabric(SPECS[spec]), np.random.default_rng(seed)
    for _ in range(100):
        down = random.choice(whole.channels, cables, replace=False).tolist()
        fabric = whole.with_links_down(down)
        with suppress(InputError):
            require_connected(fabric)
            return fabric
    raise AssertionError("every try was in pieces")


@pytest.mark.parametrize("cables", [0, 2, 4])
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("lanes", ["hop", "path"])
def test_trees_tori_and_dragonflies_have_numbers_in_all_lanes(
    spec: str, lanes: str, cables: int
) -> None:
    fabric = less(spec, cables, cables)
    for engine in ("sar", "updn"):
        mix = synthetic_mix(fabric, 1)
        routes = laid_by(lanes, fabric, mix, engine)
        holds(fabric, routes)


def test_a_cycle_has_no_numbers() -> None:
    fabric = load_fabric("torus:5,hosts=1")
    routes = load_engine("updn").route(fabric, JobMix(()), Options())
    proved, _ = certified(fabric, routes)
    planes = np.zeros((1, proved.counts.shape[1]), np.uint8)
    ports = int(proved.wiring.ports)
    clockwise = [c for c in range(fabric.channels) if fabric.channel_port[c] == 1]
    if len({int(fabric.channel_target[c]) for c in clockwise}) < 5:
        clockwise = [c for c in range(fabric.channels) if fabric.channel_port[c] == 2]
    for c in clockwise:
        s, p = int(fabric.channel_source[c]), int(fabric.channel_port[c])
        planes[0, (s * ports + p) * ports + p] = 1
    assert channel_numbers(fabric, proved.wiring, planes) is None
    broken = planes.copy()
    broken[0, np.flatnonzero(planes[0])[0]] = 0
    numbers = channel_numbers(fabric, proved.wiring, broken)
    assert numbers is not None and dependencies_rise(proved.wiring, broken, numbers)
    assert not dependencies_rise(proved.wiring, planes, numbers)


def alike(with_numbers: Transition, without: Transition) -> bool:
    """Whether numbers change nothing of the verdict."""
    return (with_numbers.way, with_numbers.danger, with_numbers.unmoved, with_numbers.drains) == (
        without.way,
        without.danger,
        without.unmoved,
        without.drains,
    )


def mixtures_hold(seed: int) -> tuple[Way, bool]:
    """Asserts that what the numbers prove is so by brute force and by the check without them, and
    that both tables rise in the order that a direct transition names."""
    fabric, before, after = random_pair(Random(seed))
    _, numbers = certified(fabric, after)
    found = examine(fabric, before, after, numbers=numbers)
    assert alike(found, examine(fabric, before, after))
    rising = found.numbers is numbers
    if rising:
        assert enumerated(fabric, before, after) == ""
    if found.way is Way.DIRECT:
        assert found.numbers is not None
        assert rise(fabric, after, found.numbers)
        if check_and_prove(fabric, before).proved:
            assert rise(fabric, before, found.numbers)
            again = examine(fabric, before, after, numbers=found.numbers)
            assert again.numbers is found.numbers
    return found.way, rising


def test_brute_force_agrees_with_the_numbers() -> None:
    seen = Counter(mixtures_hold(seed) for seed in range(share(1000)))
    assert seen[Way.DIRECT, True] > 5 < seen[Way.STAGED, False], seen
    assert seen[Way.DIRECT, False] > 0, seen


@pytest.mark.long
def test_brute_force_agrees_with_the_numbers_10_000_times() -> None:
    seen = Counter(mixtures_hold(seed) for seed in range(50_000, 60_000))
    assert seen[Way.DIRECT, True] > 1000, seen


def test_unconfirmed_entries_and_older_tables_are_proved_by_numbers_only_where_safe() -> None:
    seen: Counter[bool] = Counter()
    for seed in range(share(400)):
        random = Random(seed)
        if not (case := unconfirmed(random)):
            continue
        fabric, first, second, third, silent = case
        had = np.where(silent, first.egress, second.egress)
        _, numbers = certified(fabric, third)
        found = examine(fabric, second, third, had=had, numbers=numbers)
        assert alike(found, examine(fabric, second, third, had=had))
        rising = found.numbers is numbers
        if rising and found.way is Way.DIRECT:
            assert enumerated(fabric, second, third, had) == ""
        also = examine(fabric, second, third, also=[first], numbers=numbers)
        assert alike(also, examine(fabric, second, third, also=[first]))
        if also.numbers is numbers and also.drains == (False,):
            assert enumerated(fabric, second, third, also=(first,)) == ""
        seen[rising] += 1
    assert seen[True] > 5 < seen[False], seen
