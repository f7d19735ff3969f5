"""`assign_lids`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.lids import assign_lids
from sar_agent.fabric.xgft import xgft_fabric


def test_all_unknown_go_by_place_in_the_file() -> None:
    fabric = xgft_fabric("xgft:2;2,2;2,1")  # 4 leaves, 2 spines, 4 hosts of two ports
    switches, terminals = assign_lids(fabric)
    assert switches.tolist() == [*range(1, fabric.switches + 1)]
    assert terminals.tolist() == [*range(fabric.switches + 1, fabric.destinations + 1)]


def test_twice_the_same_lid() -> None:
    """The first in the file keeps it."""
    fabric = xgft_fabric("xgft:1;3;1")
    _, terminals = assign_lids(replace(fabric, terminal_lid=np.array([9, 9, 0xC000], np.int32)))
    assert terminals.tolist() == [9, 2, 3]


def test_too_many() -> None:
    with pytest.raises(InputError, match="do not fit into 49151 LIDs; use a smaller lmc"):
        assign_lids(xgft_fabric("xgft:2;32,32;1,1"), lmc=6)
    with pytest.raises(InputError, match="outside 0 … 7"):
        assign_lids(xgft_fabric("xgft:1;3;1"), lmc=8)
