"""Studies of peers: what the page shows is stored, and what is stored is computed again in part."""

from __future__ import annotations

import numpy as np
import pytest

from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_lab.papers.registry import experiments, peer_studies
from sar_lab.peers.congestion_risk import TableWalk, random_permutations, shifts
from tests.worlds.command_line import said, sar_agent

"""Studies with a page of their own."""


def test_studies_are_listed_beside_the_papers() -> None:
    listed = said("lab", "list", "--json")
    names = {kind: {row["name"] for row in listed[kind]} for kind in ("experiments", "peers")}  # type: ignore[attr-defined]
    assert names == {"experiments": {*experiments()}, "peers": {*peer_studies()}}
    assert "\ndmodc-degraded " in sar_agent("lab", "list").stdout


def test_congestion_risk_by_hand() -> None:
    """Two leaves of two hosts under two spines; the lowest port of every leaf is one spine."""
    fabric = load_fabric("xgft:2;2,2;1,2")
    hosts = np.arange(4, dtype=np.uint32)
    walk = TableWalk(fabric, load_engine("dmodk").route(fabric, JobMix(()), Options()))
    # Shift 1: 1 → 2 and 3 → 0; shift 2: all four cross, each spine carries one each way.
    assert walk.permutations(hosts, shifts(hosts)).tolist() == [1, 1, 1]
    # All to all: two sources and one destination on every link.
    assert walk.all_to_all(hosts) == 1
    routes = load_engine("dmodk").route(fabric, JobMix(()), Options())
    routes.egress[0, :2, 1], routes.egress[0, 2:4, 0] = 3, 3
    herd = TableWalk(fabric, routes)
    assert herd.permutations(hosts, shifts(hosts)).tolist() == [1, 2, 1]
    assert herd.all_to_all(hosts) == 2
    routes.egress[0, 2, 0] = 255
    with pytest.raises(ValueError, match="does not arrive"):
        TableWalk(fabric, routes).all_to_all(hosts)
    drawn = random_permutations(hosts, 5, 3)
    assert (np.sort(drawn, axis=1) == hosts).all() and (drawn != drawn[0]).any()
