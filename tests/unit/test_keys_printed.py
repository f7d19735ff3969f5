"""ARK and NRK as printed: the worked example, and where the print promises too much."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from sar_agent.fabric.spec import load_fabric
from sar_agent.routing.keys import key_tree, make_key
from sar_lab.research.engines.keys_printed import READINGS, matchings, printed_key, printed_shift


def test_repeated_maximum_matchings_may_need_more_middle_switches_than_flows_of_a_leaf() -> None:
    """Each leaf has two flows at most, so two middle switches are enough, and our key needs no
    more. A maximum matching may take a2b1 and a3b2, and leaves two flows of a1."""
    tails, heads = np.array([0, 0, 1, 2]), np.array([0, 1, 0, 1])
    first = {2, 3}
    left = [edge for edge in range(4) if edge not in first]
    assert len({tails[e] for e in first}) == len({heads[e] for e in first}) == 2
    assert len(set(tails[left].tolist())) == 1, "the two that are left need a switch each"
    assert len(matchings(tails[left], heads[left])) == 2
    taken = matchings(tails, heads)
    assert sorted(edge for some in taken for edge in some) == [0, 1, 2, 3] and len(taken) in (2, 3)


def test_matchings_are_the_same_in_every_process() -> None:
    code = (
        "import numpy as np; from sar_lab.research.engines.keys_printed import matchings;"
        "ends = np.random.default_rng(0).integers(0, 8, (2, 64)); print(matchings(*ends))"
    )
    found = {
        subprocess.check_output(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": h}
        )
        for h in "123"
    }
    assert len(found) == 1


def test_random_flows_for_which_repeated_matchings_are_not_free_of_contention() -> None:
    tree = key_tree(load_fabric("xgft:2;4,8;1,4"))
    random, worse = np.random.default_rng(0), 0
    for _ in range(150):
        hosts = random.permutation(32).astype(np.int32)
        flows = hosts[:16], hosts[16:]
        ours, printed = make_key(tree, [flows]), printed_key(tree, flows)
        most = [np.bincount(key.channels[key.channels >= 0]).max() for key in (ours, printed)]
        assert most[0] == 1
        worse += most[1] > 1
    assert worse


@pytest.mark.parametrize("reading", READINGS)
def test_the_fullest_colour_takes_the_emptiest_switch(reading: str) -> None:
    tree = key_tree(load_fabric("xgft:3;3,3,3;1,3,3"))
    hosts = np.random.default_rng(1).permutation(27).astype(np.int32)
    key = printed_key(tree, (hosts[:12], hosts[12:24]))
    load = np.random.default_rng(2).integers(0, 5, tree.fabric.channels)
    shift = printed_shift(key, load, reading)
    one = printed_shift(key, np.zeros_like(load), reading)
    assert (shift.own.sum(), one.own.sum()) == ((key.channels >= 0).sum(),) * 2
    assert int(shift.own.max()) == int(np.bincount(key.channels[key.channels >= 0]).max())


def test_a_drawn_start_turns_the_same_matchings() -> None:
    """On two levels the middle switches of a key are those of the other reading, turned by one
    number; keys of different flows begin at different switches."""
    tree = key_tree(load_fabric("xgft:2;4,8;1,4"))
    turns = set()
    for seed in range(12):
        hosts = np.random.default_rng(seed).permutation(32).astype(np.int32)
        flows = hosts[:16], hosts[16:]
        first, drawn = (printed_key(tree, flows, drawn).digits[:, 0] for drawn in (False, True))
        leaf = tree.fabric.terminal_switch
        up = leaf[printed_key(tree, flows).source] != leaf[printed_key(tree, flows).destination]
        [turn] = np.unique((drawn.astype(int) - first)[up] % 4)
        turns.add(int(turn))
    assert turns == {0, 1, 2, 3}
