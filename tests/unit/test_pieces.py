"""`connected_components` and `require_connected`."""

from __future__ import annotations

import numpy as np
import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.components import connected_components, is_connected, require_connected
from sar_agent.fabric.xgft import xgft_fabric


def test_one_piece() -> None:
    fabric = xgft_fabric("xgft:2;4,4;1,2")
    assert connected_components(fabric).tolist() == [0] * fabric.switches
    require_connected(fabric)


def test_dead_links_do_not_connect() -> None:
    fabric = xgft_fabric("xgft:2;4,4;1,2")
    fabric = fabric.with_links_down(np.flatnonzero(fabric.channel_source == 0).tolist())
    assert connected_components(fabric).tolist() == [1, 0, 0, 0, 0, 0]
    with pytest.raises(InputError) as caught:
        require_connected(fabric)
    assert str(caught.value) == (
        "xgft:2;4,4;1,2: the fabric is in 2 pieces, with no live link between "
        '"S1-1" (5 switches) and "S1-0" (1 switch); '
        "repair the cabling, or give one piece at a time"
    )


def test_is_connected_agrees_with_the_pieces() -> None:
    fabric = xgft_fabric("xgft:3;2,2,2;1,2,2")
    rng = np.random.default_rng(1)
    seen = set()
    for count in range(0, fabric.channels, 2):
        cut = fabric.with_links_down(rng.choice(fabric.channels, count, replace=False).tolist())
        assert is_connected(cut) == (connected_components(cut).max() == 0)
        seen.add(is_connected(cut))
    assert seen == {True, False}
