"""Transitions, of which all mixtures are looked at one by one, also where switches may have more
than old entries and new."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from sar_agent.check import check_routes
from sar_agent.check.table_sets import NO_OTHERS
from sar_agent.check.transition import Way, drains_between, examine, sound_with_levels
from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from tests.examples import share
from tests.worlds.lane_choices import laid_by
from tests.worlds.level_tables import FABRIC, T0, T1, T2, told
from tests.worlds.mixtures import enumerated, loses
from tests.worlds.table_pairs import (
    Pair,
    drawn,
    random_pair,
    redrawn,
    small,
    stages_hold,
    unconfirmed,
)


def never_harmed(seed: int) -> Way | None:
    """Asserts that no mixture harms that the verdict on a fabric with switches that have not
    confirmed allows; the verdict."""
    random = Random(seed)
    if not (case := unconfirmed(random)):
        return None
    fabric, first, second, third, silent = case
    had = np.where(silent, first.egress, second.egress)
    found = examine(fabric, second, third, had=had)
    assert found.way is not Way.UNPROVED, found.words
    assert found.proved == bool(found.stages)
    wrong = enumerated(fabric, second, third, had)
    assert (found.way in (Way.SAME, Way.DIRECT)) == (wrong == "")
    if found.stages:
        assert enumerated(fabric, second, found.stages[0], had) == ""
        # What really is in force is one of many, and any of them does well.
        truth = np.where(
            silent & (np.random.default_rng(seed).random(had.shape) < 0.5), had, second.egress
        )
        assert enumerated(fabric, replace(second, egress=truth), found.stages[0]) == ""
        stages_hold(fabric, found.stages[0], third, replace(found, stages=found.stages[1:]))
    else:
        assert found.way is Way.UNKNOWN and found.danger
        assert "have not confirmed" in found.words
    return found.way


def test_unconfirmed_entries_are_proved_for_all_possible_entries() -> None:
    ways = Counter(never_harmed(seed) for seed in range(share(400)))
    assert all(ways[way] > 0 for way in (Way.DIRECT, Way.STAGED, Way.UNKNOWN)), ways


@pytest.mark.long
def test_unconfirmed_entries_are_proved_for_all_possible_entries_10_000_times() -> None:
    ways = Counter(never_harmed(seed) for seed in range(10_000, 25_000))
    assert sum(ways.values()) - ways[None] > 8000, ways


def test_an_entry_that_may_be_anything_is_not_proved() -> None:
    random = Random(5)
    while not (case := unconfirmed(random)):
        pass
    fabric, _, second, third, _ = case
    had = second.egress.copy()
    had[0, 0, 1] = 254
    found = examine(fabric, second, third, had=had)
    assert found.way is Way.UNKNOWN and not found.proved and found.stages == ()
    assert found.words.endswith('their entries: switch "s1" may have any entry')


def test_unconfirmed_entries_of_dead_switches_and_for_nobody_do_not_matter() -> None:
    fabric = load_fabric("xgft:2;4,4;1,2").with_switches_down([5])
    engine = load_engine("minhop")
    before, after = (engine.route(fabric, synthetic_mix(fabric, k), Options()) for k in (1, 2))
    had = before.egress.copy()
    had[:, :, 5] = 254
    had[:, fabric.terminals + 5] = 254
    assert examine(fabric, before, after, had=had).way is Way.SAME
    had[:, 0, 4] = 254
    assert examine(fabric, before, after, had=had).way is Way.UNKNOWN


def no_drain_no_loop(seed: int) -> Counter[str]:
    """Asserts that packets of no tables before close a loop in stages without a drain between."""
    fabric, first, second = random_pair(Random(seed))
    found, seen = examine(fabric, first, second), Counter[str]()
    assert len(found.drains) == len(found.stages) and not any(found.drains[:1])
    if found.way not in (Way.STAGED, Way.FITTED):
        return seen
    chain, since = [first, *found.stages], 0
    for k, drains in enumerate(found.drains):
        further = tuple(chain[since:k])
        wrong = enumerated(fabric, chain[k], chain[k + 1], also=further)
        if drains:
            assert wrong or len(further) > 3
            since = k
        else:
            assert wrong == ""
        seen[f"drains: {drains}"] += k > 0
    return seen


def test_stages_without_a_drain_between_them_close_no_loop_with_packets_of_before() -> None:
    seen = sum((no_drain_no_loop(seed) for seed in range(400)), Counter[str]())
    assert all(seen[f"drains: {drains}"] > 0 for drains in (True, False)), seen


@pytest.mark.parametrize("seed", range(8))
def test_packets_of_tables_before_are_proved_or_drained(seed: int) -> None:
    """Two direct installs that follow each other."""
    random, ways = Random(seed), Counter[bool]()
    while len(ways) < 2 or sum(ways.values()) < 20:
        fabric = small(random)
        first, second, third = (drawn(fabric, random) for _ in range(3))
        if not (first and second and third):
            continue
        found = examine(fabric, second, third, also=[first])
        alone = examine(fabric, second, third)
        if alone.way is not Way.DIRECT:
            assert found.words == alone.words
            continue
        wrong = enumerated(fabric, second, third, also=(first,))
        assert found.way is Way.DIRECT and found.drains == (wrong != "",)
        ways[found.drains[0]] += 1


def test_a_step_drains_packets_of_all_tables_since_the_last_drain() -> None:
    """Any three tables in a row are safe together; packets of all four would fill lane 1."""
    fabric, chain = FABRIC, (T0, told(1), T1, told(1, 2, 3))
    assert enumerated(fabric, *chain[1:3], also=chain[:1]) == ""
    assert enumerated(fabric, *chain[2:], also=chain[1:2]) == ""
    assert enumerated(fabric, *chain[2:], also=chain[:2]) == "loop"
    assert drains_between(fabric, chain, NO_OTHERS) == (False, False, True)


def bits(*plans: Routes) -> np.ndarray:
    """uint16[O, D, S]: the service levels that `plans` handed out."""
    found = np.zeros(plans[0].egress.shape, np.uint16)
    for routes in plans:
        assert routes.service_level is not None
        found |= np.uint16(1) << routes.service_level.astype(np.uint16)
    return found


def test_levels_handed_out_to_jobs_that_run_are_proved_with_those_of_the_plan() -> None:
    """Tables never change, only levels; connections of T0 and T2 would close a loop for ever."""
    fabric, first, second, third = FABRIC, T0, T1, T2
    assert all(check_routes(fabric, routes).passed for routes in (first, second, third))
    assert examine(fabric, first, second, levels=bits(first)).way is Way.DIRECT
    assert sound_with_levels(fabric, second, bits(first)) == ""
    assert examine(fabric, second, third).way is Way.DIRECT, "it was not told of the first's"
    found = examine(fabric, second, third, levels=bits(first, second))
    assert found.way is Way.UNSAFE and "a credit loop in lane" in found.danger
    assert "a credit loop in lane" in sound_with_levels(fabric, third, bits(first))
    assert sound_with_levels(fabric, third, bits(second)) == ""
    assert enumerated(fabric, second, third, levels=bits(first)) == "loop"
    # What is in force is broken already: what would stay so does not replace it.
    assert examine(fabric, third, third, levels=bits(first)).way is Way.UNSAFE
    assert examine(fabric, third, second, levels=bits(first, third)).way is Way.UNSAFE
    healing = examine(fabric, third, second, levels=bits(first))
    assert healing.way is Way.UNPROVED and healing.stages == (second,)


def levels_agree(seed: int) -> Way | None:
    """Asserts that checker and enumeration say the same of connections of earlier plans."""
    random = Random(seed)
    fabric = small(random)
    before, after = drawn(fabric, random, 2), drawn(fabric, random, 2)
    if not (before and after):
        return None
    if random.random() < 0.5:
        before = replace(before, egress=after.egress)
        if not check_routes(fabric, before).passed:
            return None
    levels = np.zeros(after.egress.shape, np.uint16)
    for at in np.ndindex(*levels.shape):
        levels[at] = random.choice([0, 0, 0, 0, 1, 2, 4, 32])
    wrong = enumerated(fabric, before, after, levels=levels)
    found = examine(fabric, before, after, levels=levels)
    assert (found.way in (Way.SAME, Way.DIRECT)) == (wrong == "")
    steady = sound_with_levels(fabric, after, levels)
    assert (steady == "") == (enumerated(fabric, after, after, levels=levels) == "")
    if found.way is Way.UNPROVED:
        assert not steady or loses(fabric, before)
    elif found.stages:
        for old, new in pairwise((before, *found.stages)):
            assert enumerated(fabric, old, new, levels=levels) == ""
    return found.way


def test_the_checker_agrees_with_enumeration_on_levels_handed_out() -> None:
    ways = Counter(levels_agree(seed) for seed in range(max(90, share(300))))
    assert all(ways[way] > 0 for way in (Way.DIRECT, Way.STAGED, Way.UNPROVED)), ways


def agrees(fabric: Fabric, before: Routes, after: Routes) -> Way:
    """Asserts that checker and enumeration say the same; what the checker says."""
    found, wrong = examine(fabric, before, after), enumerated(fabric, before, after)
    assert (found.way in (Way.SAME, Way.DIRECT)) == (wrong == "")
    if found.way is Way.UNPROVED:
        assert enumerated(fabric, before, before) or loses(fabric, before)
    elif wrong:
        said = {"round": "could circle", "lost": "could be lost", "loop": "a credit loop"}[wrong]
        assert said in found.danger
        assert not enumerated(fabric, before, before)
        stages_hold(fabric, before, after, found)
    return found.way


def many(seeds: range) -> Counter[Way]:
    return Counter(agrees(*random_pair(Random(seed))) for seed in seeds)


def test_the_checker_agrees_with_enumeration() -> None:
    ways = many(range(400))
    assert all(ways[way] > 5 for way in (Way.DIRECT, Way.STAGED, Way.UNPROVED)), ways


@pytest.mark.long
def test_the_checker_agrees_with_enumeration_on_10_000_pairs() -> None:
    ways = many(range(1000, 11000))
    assert all(ways[way] > 0 for way in Way if way not in (Way.UNSAFE, Way.UNKNOWN)), ways


@pytest.mark.parametrize("lanes", ["hop", "path"])
@pytest.mark.parametrize("seed", range(6))
def test_fabrics_that_need_lanes(lanes: str, seed: int) -> None:
    """A ring with a chord, and other random trees, one by one, as long as the lanes suffice."""
    fabric, random = load_fabric("torus:5,hosts=1"), Random(seed)
    before = laid_by(lanes, fabric, JobMix(()))
    assert (before.hop_lane is not None) == (lanes == "hop")
    after = redrawn(before, fabric, random)
    assert after is not before
    agrees(fabric, before, after)
    agrees(fabric, after, before)


def lanes_by_path(spec: str) -> Pair:
    """Each without credit loop, their union not."""
    fabric = load_fabric(spec)
    before, after = (laid_by("path", fabric, synthetic_mix(fabric, seed)) for seed in (1, 2))
    return fabric, before, after


def test_where_the_union_closes_a_loop_stages_reach_as_far_as_they_may() -> None:
    fabric, before, after = lanes_by_path("dragonfly:a=4,p=2,h=2")
    found = examine(fabric, before, after)
    assert found.way is Way.FITTED and "a credit loop in lane" in found.danger
    for old, new in pairwise((before, *found.stages)):
        assert check_routes(fabric, new).passed
        assert examine(fabric, old, new).way is Way.DIRECT


@pytest.mark.parametrize("kinds", [("path", "hop"), ("hop", "path"), ("hop", "hop")])
def test_tables_that_are_sound_in_their_own_lanes_are_sound(kinds: tuple[str, str]) -> None:
    """All lanes taken as one may close a loop in what is in force alone. That is no loop, and no
    reason to let a mixture happen."""
    whole = load_fabric("torus:3x3x3,hosts=2")
    fabric = whole.with_links_down([0, 1, 8, 9, 40])
    before, after = (
        laid_by(kind, fabric, synthetic_mix(fabric, seed)) for seed, kind in enumerate(kinds, 1)
    )
    assert check_routes(fabric, before).passed and check_routes(fabric, after).passed
    assert [routes.hop_lane is not None for routes in (before, after)] == [
        k == "hop" for k in kinds
    ]
    found = examine(fabric, before, after)
    assert found.way is Way.UNSAFE and "the lanes change, too" in found.danger
