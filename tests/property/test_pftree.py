"""The pFTree family: the paper's figures switch by switch, and what must hold on any tree."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from sar_agent.check import check_routes
from sar_agent.errors import CheckFailed, SarError
from sar_agent.fabric import Fabric
from sar_agent.fabric.components import is_connected
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.partitions import Partition, Partitions, Policy, make_partitions
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.pftree import _algorithm_2
from tests.examples import share
from tests.worlds.oracles import path
from tests.worlds.partitioned_trees import partitioned, roots, tree

NOBODY = JobMix(())


def routed(fabric: Fabric, partitions: Partitions, engine: str, **more: object) -> Routes:
    options = Options(**{"partitions": partitions, "max_lanes": 8} | more)  # type: ignore[arg-type]
    routes = load_engine(engine).route(fabric, NOBODY, options)
    assert check_routes(fabric, routes).passed
    return routes


def shared_links(fabric: Fabric, routes: Routes, partitions: Partitions) -> dict[int, set[int]]:
    """By channel with routes of several partitions, these; followed pair by pair."""
    users: dict[int, set[int]] = {}
    for number, part in enumerate(partitions.parts):
        for d in part.terminals.tolist():
            for s in part.terminals.tolist():
                for c in path(fabric, routes, int(fabric.terminal_switch[s]), d) or ():
                    users.setdefault(c, set()).add(number)
    return {c: found for c, found in users.items() if len(found) > 1}


def test_figure_3b_two_partitions_on_two_roots() -> None:
    fabric = tree(["abcd", "efgh"], 2)
    partitions = partitioned(fabric, "abef", "cdgh")
    routes = routed(fabric, partitions, "pftree")
    assert shared_links(fabric, routes, partitions) == {}
    assert routes.virtual_lanes == 1


def test_figure_4_hosts_follow_their_partition() -> None:
    """Leaf L1 has a, d of partition 1 and b, c of partition 2; L2 has g, h and e, f."""
    fabric = tree(["abcd", "efgh"], 2)
    partitions = partitioned(fabric, "adgh", "bcef")
    for engine in ("pftree", "pftree-ext"):
        routes = routed(fabric, partitions, engine)
        one, two = roots(fabric, routes, "ad", "L2"), roots(fabric, routes, "bc", "L2")
        assert len(set(one.values())) == len(set(two.values())) == 1
        assert one["a"] != two["b"]
        there = roots(fabric, routes, "efgh", "L1")
        assert there == {"g": one["a"], "h": one["a"], "e": two["b"], "f": two["b"]}
        assert shared_links(fabric, routes, partitions) == {}


def test_figures_5_and_6_a_physically_isolated_partition() -> None:
    """Nine hosts in three partitions on two roots."""
    fabric = tree(["ABCD", "EFGHI"], 2)
    plain = partitioned(fabric, "AE", "BFI", "CDGH")
    routes = routed(fabric, plain, "pftree")
    assert shared_links(fabric, routes, plain), "two roots are too few for three"
    assert routes.virtual_lanes > 1
    marked = partitioned(fabric, "AE phy", "BFI", "CDGH")
    routes = routed(fabric, marked, "pftree-ext")
    shared = shared_links(fabric, routes, marked)
    assert all(0 not in users for users in shared.values())
    own = roots(fabric, routes, "E", "L1")["E"]
    assert set(roots(fabric, routes, "FGHI", "L1").values()) == {"R1" if own == "R2" else "R2"}
    assert roots(fabric, routes, "A", "L2")["A"] == own
    assert routes.virtual_lanes == 1


def test_figure_12_a_heavy_node_has_a_root_of_its_own() -> None:
    fabric = tree(["abcd", "efgh"], 2)
    heavy = {fabric.hosts["a"][0]: 100.0}
    partitions = partitioned(fabric, "adgh", "bcef", weight=heavy)
    routes = routed(fabric, partitions, "pftree-wt")
    found = roots(fabric, routes, "abcd", "L2")
    assert found["b"] == found["c"] == found["d"] != found["a"]
    there = roots(fabric, routes, "efgh", "L1")
    assert there["g"] == there["h"] != there["e"] == there["f"]


def test_algorithm_2() -> None:
    home = np.array([0, 1, 1, 0, 2, 2, 0, 1], np.int32)
    assert _algorithm_2([0, 1, 2, 3], home, 2) == [0, 1, 3, 2]
    assert _algorithm_2([0, 1, 2, 3], home, 4) == [0, 1, 2, 3]
    ordered = _algorithm_2(list(range(8)), home, 4)
    assert sorted(ordered) == list(range(8))


def random_partitions(fabric: Fabric, random: Random, **given: object) -> Partitions:
    hosts = [t for t in range(fabric.terminals) if fabric.is_host_port[t]]
    random.shuffle(hosts)
    parts = []
    for number in range(random.randint(1, 4)):
        some, hosts = hosts[: random.randint(2, 6)], hosts[6:]
        if len(some) < 2:
            break
        policy = random.choice(list(Policy))
        parts.append(Partition(f"p{number}", 0, np.array(sorted(some), np.int32), policy))
    return make_partitions(parts, fabric, **given)


TREES = ("xgft:2;4,4;1,4", "xgft:3;2,3,3;1,2,2", "xgft:3;3,2,4;1,3,3", "xgft:2;4,6;1,2")


@pytest.mark.parametrize("engine", ["pftree-ext", "pftree-combined"])
def test_phy_partitions_share_no_link_ever(engine: str) -> None:
    kept = 0
    for seed in range(share(200)):
        random = Random(seed)
        fabric = load_fabric(TREES[seed % len(TREES)])
        partitions = random_partitions(fabric, random, strict=True)
        try:
            routes = routed(fabric, partitions, engine)
        except CheckFailed as failed:
            assert "partition p" in str(failed) or "in no partition" in str(failed)
            continue
        kept += 1
        phy = {n for n, p in enumerate(partitions.parts) if p.policy is Policy.PHY}
        for users in shared_links(fabric, routes, partitions).values():
            assert not users & phy
            lanes = [lane_of(routes, partitions, n) for n in users]
            for n in users:
                if partitions.parts[n].policy is Policy.VLANE:
                    assert lanes.count(lane_of(routes, partitions, n)) == 1
    assert kept > share(100)


def lane_of(routes: Routes, partitions: Partitions, number: int) -> int:
    if routes.service_level is None:
        return 0
    d = int(partitions.parts[number].terminals[0])
    return int(routes.service_level[0, d, 0])


def test_best_effort_always_routes() -> None:
    for seed in range(100):
        fabric = load_fabric(TREES[seed % len(TREES)])
        partitions = random_partitions(fabric, Random(seed), strict=False)
        routed(fabric, partitions, "pftree-ext", max_lanes=2)


def test_strict_says_who_and_where() -> None:
    fabric = tree(["ab", "cd"], 1)
    partitions = partitioned(fabric, "ac phy", "bd phy")
    with pytest.raises(CheckFailed) as failed:
        routed(fabric, partitions, "pftree-ext")
    assert 'partition 2 must share the link "L' in str(failed.value)
    lanes = partitioned(fabric, "ac vlane", "bd vlane")
    with pytest.raises(CheckFailed, match="partition 1 needs a virtual lane of its own"):
        routed(fabric, lanes, "pftree-ext", max_lanes=1)


@pytest.mark.parametrize("engine", ["pftree", "pftree-ext", "pftree-wt"])
def test_degraded_trees_are_served_or_refused(engine: str) -> None:
    served = 0
    for seed in range(share(200)):
        random = Random(seed)
        whole = load_fabric(TREES[seed % len(TREES)])
        dead = random.sample(range(whole.channels), random.randint(0, whole.channels // 6))
        fabric = whole.with_links_down(dead)
        if not is_connected(fabric):
            continue
        try:
            routed(fabric, random_partitions(fabric, random, strict=False), engine)
        except SarError as refusal:
            assert "sar-plus" in str(refusal)
            continue
        served += 1
    assert served > share(60)
