"""Tables that OpenSM really installed, judged by OpenSM's own hop counts and by ibdmchk."""

from __future__ import annotations

import pytest

from tests.worlds.live.fat_tree import FatTree
from tests.worlds.live.repair_verdict import dumped_by_opensm
from tests.worlds.live.ring import Ring
from tests.worlds.live.site import site

pytestmark = pytest.mark.live


@pytest.mark.parametrize("tree", [FatTree(), FatTree(leaves=3, hosts=2, spines=3), Ring()])
def test_hop_counts_are_those_of_opensm(tree: FatTree | Ring) -> None:
    with site(tree, routing_engine="minhop") as here:
        stock = dumped_by_opensm(here, "opensm-lid-matrix.dump").read_text()
    with site(tree) as here:
        here.load(tree.routes(1))
        ours = dumped_by_opensm(here, "opensm-lid-matrix.dump").read_text()
        assert here.bridge.status().engine_in_force == "sar"
    assert ours == stock and stock.count("Switch:") == len(tree.switches())
