"""The transition check against all mixtures, one by one; and stages that are what they claim."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from sar_agent.check import check_changed, check_routes
from sar_agent.check.transition import Transition, Way, examine
from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lanes import routed
from sar_agent.routing.offsets import stack
from tests.examples import share
from tests.property.histories import history, tree
from tests.property.mixtures import enumerated, loses

Pair = tuple[Fabric, Routes, Routes]


def small(random: Random) -> Fabric:
    """3 to 5 switches in one piece with a host each, and up to four more cables."""
    size = random.randint(3, 5)
    builder, used = FabricBuilder("small"), [0] * size

    def port(switch: int) -> int:
        used[switch] += 1
        return used[switch]

    for s in range(size):
        builder.add_switch(100 + s, f"s{s}", 12)
        builder.add_terminal(900 + s, f"h{s} HCA-1", f"h{s}", s, port(s))
    cables = [(random.randrange(s), s) for s in range(1, size)]
    cables += [tuple(random.sample(range(size), 2)) for _ in range(random.randint(1, 4))]
    for a, b in cables:
        builder.add_link(a, port(a), b, port(b))
    return builder.build()


def random_pair(random: Random) -> Pair:
    """New tables that pass the check, and old ones that may be broken."""
    lanes = random.choice([1, 1, 2])
    while True:
        fabric, steps = small(random), random.choice([1, 1, 3])
        states = [r for f, r in history(fabric, random, 1, (1, lanes))]
        for _ in range(steps):
            egress = states[-1].egress.copy()
            for d in range(fabric.destinations):
                if random.random() < 0.5:
                    egress[0, d] = tree(fabric, d, random)
            states.append(replace(states[-1], egress=egress))
        before, after = states[0], states[-1]
        if random.random() < 0.3:
            d, s = random.randrange(fabric.destinations), random.randrange(fabric.switches)
            before.egress[0, d, s] = random.choice([*range(8), 255])
        if check_routes(fabric, after).passed:
            return fabric, before, after


def agrees(fabric: Fabric, before: Routes, after: Routes) -> Way:
    """Asserts that checker and enumeration say the same; what the checker says."""
    found, wrong = examine(fabric, before, after), enumerated(fabric, before, after)
    assert (found.way in (Way.SAME, Way.DIRECT)) == (wrong == "")
    if found.way is Way.UNPROVED:
        assert enumerated(fabric, before, before) or loses(fabric, before)
    elif wrong:
        said = {"round": "could go round", "lost": "could be lost", "loop": "a credit loop"}[wrong]
        assert said in found.danger
        assert not enumerated(fabric, before, before)
        stages_hold(fabric, before, after, found)
    return found.way


def stages_hold(fabric: Fabric, before: Routes, after: Routes, found: Transition) -> None:
    """Every stage passes the check, and any mixture of it with the one before is safe."""
    for old, new in pairwise((before, *found.stages)):
        assert check_routes(fabric, new).passed
        assert enumerated(fabric, old, new) == ""
    if found.way is Way.STAGED:
        assert found.stages[-1] is after
    elif found.way is Way.FITTED:
        last = found.stages[-1].egress
        unmoved = (last != after.egress).any(axis=2)
        assert np.count_nonzero(unmoved) == found.unmoved > 0
        assert (last[unmoved] == before.egress[unmoved]).any()


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
    """A ring with a chord, whose trees are drawn anew one by one as long as the lanes suffice."""
    fabric, random = load_fabric("torus:5,hosts=1"), Random(seed)
    options = Options(lanes="hop" if lanes == "hop" else "path")
    before = routed(load_engine("sar"), fabric, JobMix(()), options)
    assert (before.hop_lane is not None) == (lanes == "hop")
    after = before
    for d in random.sample(range(fabric.destinations), fabric.destinations):
        egress = after.egress.copy()
        egress[0, d] = tree(fabric, d, random)
        other = replace(after, egress=egress)
        after = other if check_routes(fabric, other).passed else after
    assert after is not before
    agrees(fabric, before, after)
    agrees(fabric, after, before)


def lanes_by_path(spec: str) -> Pair:
    """Each without credit loop, their union not."""
    fabric = load_fabric(spec)
    before, after = (
        routed(load_engine("sar"), fabric, synthetic_mix(fabric, seed), Options(lanes="path"))
        for seed in (1, 2)
    )
    return fabric, before, after


def test_where_the_union_closes_a_loop_stages_reach_as_far_as_they_may() -> None:
    fabric, before, after = lanes_by_path("dragonfly:a=4,p=2,h=2")
    found = examine(fabric, before, after)
    assert found.way is Way.FITTED and "a credit loop in lane" in found.danger
    for old, new in pairwise((before, *found.stages)):
        assert check_routes(fabric, new).passed
        assert examine(fabric, old, new).way is Way.DIRECT


def test_where_hardly_anything_could_move_nothing_does() -> None:
    found = examine(*lanes_by_path("torus:4x4,hosts=2"))
    assert found.way is Way.UNSAFE and found.words.startswith("not safe: a credit loop in lane")


def test_lanes_that_become_others_are_taken_as_one() -> None:
    tree_, ring = load_fabric("xgft:2;4,4;1,2"), load_fabric("torus:5,hosts=1")
    base = load_engine("sar").route(tree_, synthetic_mix(tree_, 1), Options())
    both = stack(base, load_engine("updn").route(tree_, JobMix(()), Options()), 1)
    assert examine(tree_, stack(base, None, 1), both).way is Way.DIRECT
    one = load_engine("updn").route(ring, JobMix(()), Options())
    two = routed(load_engine("sar"), ring, JobMix(()), Options(lanes="path"))
    found = examine(ring, one, two)
    assert found.way is Way.UNSAFE and "lanes are others, too" in found.danger
    assert found.stages == () and found.words.startswith("not safe: a credit loop")


@pytest.mark.parametrize("kinds", [("path", "hop"), ("hop", "path"), ("hop", "hop")])
def test_what_is_sound_in_its_own_lanes_is_not_called_unsound(kinds: tuple[str, str]) -> None:
    """All lanes taken as one may close a loop in what is in force alone. That is no loop, and no
    reason to let a mixture happen."""
    whole = load_fabric("torus:3x3x3,hosts=2")
    fabric = whole.with_links_down([0, 1, 8, 9, 40])
    before, after = (
        routed(load_engine("sar"), fabric, synthetic_mix(fabric, seed), Options(lanes=kind))
        for seed, kind in enumerate(kinds, 1)
    )
    assert check_routes(fabric, before).passed and check_routes(fabric, after).passed
    assert [routes.hop_lane is not None for routes in (before, after)] == [
        k == "hop" for k in kinds
    ]
    found = examine(fabric, before, after)
    assert found.way is Way.UNSAFE and "lanes are others, too" in found.danger


@pytest.mark.parametrize("seed", range(3))
def test_the_proof_of_the_new_tables_saves_work_and_changes_nothing(seed: int) -> None:
    fabric, before, after = random_pair(Random(seed))
    proved = check_changed(fabric, after, None).proved
    assert examine(fabric, before, after, proved).words == examine(fabric, before, after).words


def drawn(fabric: Fabric, random: Random) -> Routes | None:
    """Trees drawn at random that pass the check; None where none were found soon."""
    for _ in range(60):
        egress = np.full((1, fabric.destinations, fabric.switches), 255, np.uint8)
        for d in range(fabric.destinations):
            egress[0, d] = tree(fabric, d, random)
        routes = Routes("drawn", fabric.digest, egress)
        if check_routes(fabric, routes).passed:
            return routes
    return None


def unconfirmed(random: Random) -> tuple[Fabric, Routes, Routes, Routes, np.ndarray] | None:
    """A fabric, three sound plans, the second installed over the first, mostly as the proof allows,
    and which entries (bool[1, D, S]) of the second some switches have not confirmed."""
    fabric = small(random)
    first, second, third = (drawn(fabric, random) for _ in range(3))
    if not (first and second and third):
        return None
    if examine(fabric, first, second).way is not Way.DIRECT and random.random() < 0.7:
        return None
    silent = np.zeros(second.egress.shape, np.bool_)
    for s in random.sample(range(fabric.switches), random.choice([1, 1, 1, 2])):
        silent[0, :, s] = True
        if random.random() < 0.3:  # a block of it was confirmed
            silent[0, : random.randrange(fabric.destinations), s] = False
    return fabric, first, second, third, silent


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


def test_what_switches_have_not_confirmed_is_proved_for_what_they_may_have() -> None:
    ways = Counter(never_harmed(seed) for seed in range(share(600)))
    assert all(ways[way] > 0 for way in (Way.DIRECT, Way.STAGED, Way.UNKNOWN)), ways


@pytest.mark.long
def test_what_switches_have_not_confirmed_is_proved_for_what_they_may_have_10_000_times() -> None:
    ways = Counter(never_harmed(seed) for seed in range(10_000, 40_000))
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
