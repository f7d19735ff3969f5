"""A load waits for OpenSM's lock while another engine rewrites the fabric, on purpose: the fallback
engine takes as long as the test wants it to (opensm_bridge/tests/slow_engine.c)."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sar_agent.formats.routes_file import write_routes_file
from sar_agent.opensm.plugin_client import PluginRefused
from tests.worlds.live.slow_opensm import CUT, falls_back, slow

pytestmark = pytest.mark.live


def test_a_load_proved_from_what_a_fallback_then_rewrote_is_refused() -> None:
    with slow() as (here, gate), ThreadPoolExecutor(1) as pool:
        proved_from = here.bridge.dump().digest
        falls_back(here, gate)
        status = here.bridge.status()  # at once, with the lock taken
        assert (status.state, status.engine_in_force) == ("building", "sar")
        write_routes_file(here.sm.next_path, here.tree.routes(6, cut=CUT))
        load = pool.submit(here.bridge.load, 6, proved_from)
        gate.unlink()
        with pytest.raises(
            PluginRefused, match="engine slow is in force: the tables in force"
        ) as refused:
            load.result()
        assert refused.value.code == "changed"
        here.wait(lambda s: s.settled and s.engine_in_force == "slow")

        # Read again, and proved from that: it is installed.
        assert here.bridge.load(6, here.bridge.dump().digest).generation_in_force == 6
        here.assert_in_force(here.tree.routes(6, cut=CUT))


def test_a_load_proved_from_what_is_in_force_is_installed_and_only_once() -> None:
    with slow() as (here, _):
        proved_from = here.bridge.dump().digest
        assert proved_from == here.bridge.dump().digest
        write_routes_file(here.sm.next_path, here.tree.routes(6, shift=1))
        assert here.bridge.load(6, proved_from).generation_in_force == 6
        write_routes_file(here.sm.next_path, here.tree.routes(7))
        with pytest.raises(PluginRefused, match="generation 6 stays in force") as refused:
            here.bridge.load(7, proved_from)
        assert refused.value.code == "changed"
        here.assert_in_force(here.tree.routes(6, shift=1))


def test_a_load_past_its_deadline_is_under_way_and_nothing_else_begins() -> None:
    with slow(deadline=1) as (here, gate):
        falls_back(here, gate)
        write_routes_file(here.sm.next_path, here.tree.routes(6, cut=CUT))
        with pytest.raises(PluginRefused, match=r"not in force after 1 s.*\(building\)") as refused:
            here.bridge.load(6, None)
        assert refused.value.code == "deadline"
        assert here.bridge.status().state == "building" and not here.bridge.status().settled
        with pytest.raises(PluginRefused, match="another load is under way") as refused:
            here.bridge.load(7, None)
        assert refused.value.code == "busy"
        gate.unlink()
        status = here.wait(lambda s: s.settled and s.generation_in_force == 6)
        assert (status.engine_in_force, status.last_error) == ("sar", "")
        here.assert_in_force(here.tree.routes(6, cut=CUT))


def test_tables_on_their_way_are_sending_and_the_dump_says_what_switches_may_have() -> None:
    """The time between the release of OpenSM's lock and the end of pending transactions: nothing
    answers while ibsim stands still."""
    with slow(options={"transaction_timeout": "20000"}) as (here, gate):
        before = here.tree.routes(5)
        falls_back(here, gate)
        os.kill(here.fabric.pid, signal.SIGSTOP)
        try:
            gate.unlink()
            here.wait(lambda s: s.state == "sending")
            assert not here.bridge.status().settled
            dumped = here.dumped()
        finally:
            os.kill(here.fabric.pid, signal.SIGCONT)
        after = here.wait(lambda s: s.settled and s.engine_in_force == "slow")
        assert after.routings > 0
        found = here.dumped()
    assert dumped.engine == "slow" and dumped.had is not None and found.had is None
    assert np.array_equal(dumped.forwarding, found.forwarding), "what was sent"
    # OpenSM sends everything to leaf0 and spine0, whose cable has died; they have their tables.
    assert np.array_equal(dumped.had, before.forwarding), "or what they had"
