"""Messages in parts over several LIDs, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_agent.routing.routes import Routes
from sar_lab.research.peers.layered_paths import (
    arrival,
    host_partners,
    messages,
    slowdowns,
    switch_partners,
)


def test_parts_of_a_message_share_what_is_on_their_paths() -> None:
    """Two leaves of two hosts under two spines; all paths lead over the first spine, or half of the
    parts over the second one."""
    fabric = load_fabric("xgft:2;2,2;1,2")
    table = load_engine("dmodk").route(fabric, JobMix(()), Options()).egress[0].copy()
    leaves = fabric.leaves
    up = {leaf: sorted({*table[:4, leaf].tolist()} - {1, 2}) for leaf in leaves.tolist()}
    first, second = table.copy(), table.copy()
    for leaf, ports in up.items():
        away = np.flatnonzero(fabric.terminal_switch != leaf)
        first[away, leaf], second[away, leaf] = ports
    pairs = np.array([[0, 2], [1, 3], [2, 1]], np.int32)
    one, both = (
        arrival(fabric, Routes("by hand", fabric.digest, np.stack(tables)), messages(fabric, pairs))
        for tables in ([first], [first, second])
    )
    assert one.tolist() == pytest.approx([2, 2, 1])
    assert both.tolist() == pytest.approx([1, 1, 1])


def test_each_host_has_one_that_sends_to_it() -> None:
    fabric = load_fabric("slimfly:3,hosts=2")
    for pairs in (switch_partners(fabric, 1), host_partners(fabric, 1)):
        assert all(
            np.array_equal(np.sort(pairs[:, i]), np.arange(fabric.terminals)) for i in (0, 1)
        )
        assert (pairs[:, 0] != pairs[:, 1]).all()
    of = fabric.terminal_switch[switch_partners(fabric, 1)]
    assert (of[:, 0] != of[:, 1]).all() and len(np.unique(of, axis=0)) == fabric.switches


def test_on_a_slim_fly_longer_paths_help_where_a_switch_sends_to_one_other() -> None:
    """A smaller one than that of the study."""
    found = slowdowns("slimfly:3,hosts=3", 1)
    assert found["switch to switch", "lnmp, 4 LIDs"] < found["switch to switch", "dfsssp"]
    assert min(found.values()) >= 1 - 1e-9
