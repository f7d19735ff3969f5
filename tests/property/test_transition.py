"""The transition check against all mixtures, one by one; and stages that are what they claim."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from sar_agent.check import check_routes
from sar_agent.check.transition import Way, examine
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lanes import routed
from tests.worlds.mixtures import enumerated, loses
from tests.worlds.table_pairs import Pair, random_pair, redrawn, stages_hold


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
    options = Options(lanes="hop" if lanes == "hop" else "path")
    before = routed(load_engine("sar"), fabric, JobMix(()), options)
    assert (before.hop_lane is not None) == (lanes == "hop")
    after = redrawn(before, fabric, random)
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


@pytest.mark.parametrize("kinds", [("path", "hop"), ("hop", "path"), ("hop", "hop")])
def test_tables_that_are_sound_in_their_own_lanes_are_sound(kinds: tuple[str, str]) -> None:
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
    assert found.way is Way.UNSAFE and "the lanes change, too" in found.danger
