"""The number of LIDs that a port may have, and `assign_lids`."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.cabling import MAX_LID
from sar_agent.fabric.lids import assign_lids
from sar_agent.fabric.lmc import LARGEST_LMC, LmcPlan, _fits, lmc_plan
from sar_agent.fabric.spec import load_fabric
from sar_agent.fabric.xgft import xgft_fabric


def first_fit(needs: list[int]) -> bool:
    """As OpenSM's `__osm_lid_mgr_find_free_lid_range`: the lowest that are free and aligned."""
    taken = [True] + [False] * MAX_LID
    lowest = dict.fromkeys(needs, 0)
    for need in needs:
        at = lowest[need]
        while at + need <= MAX_LID + 1 and any(taken[at : at + need]):
            at += need
        if at + need > MAX_LID + 1:
            return False
        taken[at : at + need] = [True] * need
        lowest[need] = at + need
    return True


@pytest.mark.parametrize("lmc", [0, 3, 5, 7])
def test_the_largest_lmc_is_that_of_first_fit(lmc: int) -> None:
    draw = random.Random(lmc)
    for switches in (1, 127, 128, 1000):
        most = max(n for n in range(MAX_LID + 1) if _fits(n, switches, lmc))
        for ports in (most, most + 1):
            needs = [1] * switches + [1 << lmc] * ports
            draw.shuffle(needs)
            assert first_fit(needs) == (ports == most)


def test_the_largest_is_said_and_more_is_refused_with_why() -> None:
    fabric = load_fabric("xgft:3;12,12,12;1,12,12")
    plan = lmc_plan(fabric)
    assert (plan.lmc, plan.largest, plan.keys, plan.fits) == (4, 4, 14, True)
    assert plan.lids == 432 + 1728 * 16 and plan.lids <= MAX_LID
    assert "14 for routing keys; the largest that fits is 4" in plan.words()
    with pytest.raises(InputError, match=r"LMC 5 takes 55,728 LIDs .* 49,151; the largest .* is 4"):
        lmc_plan(fabric, 5).require()
    with pytest.raises(InputError, match="LMC 9 is more than the 7"):
        lmc_plan(fabric, 9).require()
    assert lmc_plan(fabric, 1).require().keys == 0
    assert lmc_plan(load_fabric("xgft:2;4,4;1,2")).largest == LARGEST_LMC
    assert LmcPlan(60000, 1, 0, -1).json()["fits"] is False


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
