"""Tables that OpenSM really installed, judged by OpenSM's own hop counts and by ibdmchk."""

from __future__ import annotations

import pytest

from tests.worlds.live.fat_tree import FatTree
from tests.worlds.live.repair_verdict import dumped_by_opensm, verdict
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


def test_ibdmchk_sees_the_loop_of_one_lane_and_none_with_two() -> None:
    with site(Ring()) as here:
        here.load(here.tree.routes(1))
        assert not verdict(here).clean
        here.load(here.tree.routes(2, lanes=2))
        two = verdict(here)
        assert two.clean and two.lanes == 2, two.text[-1500:]


def test_ibdmchk_finds_no_loop_in_a_fat_tree() -> None:
    with site() as here:
        here.load(here.tree.routes(1, lanes=2))
        assert verdict(here).clean
