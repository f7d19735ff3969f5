"""`Fabric`: its digest, and what dies in it."""

from __future__ import annotations

import numpy as np
import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.components import require_connected
from sar_agent.fabric.xgft import xgft_fabric

TREE = xgft_fabric("xgft:2;4,4;1,2")


def test_the_digest_of_a_known_tree() -> None:
    assert TREE.digest.hex() == "4dd040643f3f823067991a07f6e9133fddedf67b798dc2387f48835df1d9532f"


def test_a_switch_that_dies_takes_all_its_cables_along() -> None:
    cut = TREE.with_switches_down([0]).with_switches_down([4])
    assert cut.switches_down == (0, 4) and cut.switch_up.tolist() == [0, 1, 1, 1, 0, 1]
    dead = np.isin(TREE.channel_source, [0, 4]) | np.isin(TREE.channel_target, [0, 4])
    assert np.array_equal(cut.channel_up, ~dead)
    assert np.array_equal(cut.terminal_up, TREE.terminal_switch != 0)
    assert cut.leaves.tolist() == [1, 2, 3]
    require_connected(cut)
    assert TREE.channel_up.all() and TREE.switch_up.all()
    links = TREE.with_links_down(np.flatnonzero(dead), np.flatnonzero(TREE.terminal_switch == 0))
    assert cut.digest != links.digest, "there, the dead switches are asked for"


@pytest.mark.parametrize("engine", ["minhop", "dfsssp", "sar"])
def test_routes_around_a_dead_switch_pass(engine: str) -> None:
    from sar_agent.check import check_routes
    from sar_agent.demand.endpoints import synthetic_mix
    from sar_agent.routing import Options, load_engine

    fabric = xgft_fabric("xgft:3;3,3,3;1,3,3")
    for switch in (0, 9, 20):
        cut = fabric.with_switches_down([switch])
        routes = load_engine(engine).route(cut, synthetic_mix(cut, 1), Options())
        verdict = check_routes(cut, routes)
        assert verdict.passed, verdict.problems
        assert not check_routes(
            cut, load_engine(engine).route(fabric, synthetic_mix(cut, 1), Options())
        ).passed


@pytest.mark.parametrize(
    ("guid", "lid", "said"), [(1 << 64, 1, "64 bits"), (1, 1 << 31, "31 bits"), (1, 1 << 70, "31")]
)
def test_numbers_that_no_fabric_has_are_one_sentence(guid: int, lid: int, said: str) -> None:
    builder = FabricBuilder("odd")
    builder.add_switch(guid, "s", 4, lid=lid)
    with pytest.raises(InputError, match=said):
        builder.build()
