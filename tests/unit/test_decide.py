"""When there is to be a reroute, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sar_agent.agent.decide import ObservedState, Reason, decide
from sar_agent.agent.state import SavedHold, State
from sar_agent.install.subnet_manager import SmStatus
from sar_agent.jobs.filter import host_sets
from sar_agent.opensm.plugin_client import PluginStatus
from sar_agent.opensm.plugin_install import sm_status
from tests.worlds.fake_opensm import STATUS, job

A, B = job("1", "n1", "n5"), job("2", "n2", "n6")
STATUS_OK = PluginStatus.model_validate(STATUS | {"generation_in_force": 7})
MADE = State(
    generation=7,
    engine="sar",
    jobs=host_sets([A, B]),
    fabric_digest=b"fabric".hex(),
    installed_at=0.0,
    identity="7",
)
SEEN = ObservedState((A, B), b"fabric", "sar", now=1000.0, status=sm_status(STATUS_OK))


def status(**changes: object) -> SmStatus:
    return sm_status(STATUS_OK.model_copy(update=changes))


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (replace(SEEN, records=(A,)), Reason.JOBS),
        (replace(SEEN, records=(A, B, job("3", "n3", "n7"))), Reason.JOBS),
        (replace(SEEN, records=(A,), topology_edited=True), Reason.TOPOLOGY),
        (replace(SEEN, fabric_digest=b"other"), Reason.FABRIC),
        (replace(SEEN, engine="dfsssp"), Reason.ENGINE),
        (replace(SEEN, status=status(engine_in_force="dfsssp")), Reason.FALLBACK),
        (replace(SEEN, status=status(generation_in_force=6)), Reason.GENERATION),
    ],
)
def test_each_reason(seen: ObservedState, reason: Reason) -> None:
    assert decide(MADE, seen).reason is reason


def test_fallback_says_why_and_comes_before_all_else() -> None:
    seen = replace(
        SEEN,
        records=(),
        fabric_digest=b"other",
        status=status(engine_in_force="updn", last_error="stale: leaf0"),
    )
    decision = decide(MADE, seen, SavedHold(until=2000.0))
    assert decision.reason is Reason.FALLBACK and "updn" in decision.why
    assert "stale: leaf0" in decision.why


def test_a_hold_until_it_is_ended() -> None:
    for records in ((A,), ()):
        decision = decide(MADE, replace(SEEN, records=records), SavedHold())
        assert decision.reason is None and decision.held
        assert "held until `sar-agent resume`, although" in decision.why


def test_a_hold_for_a_time() -> None:
    hold = SavedHold(until=1010.0)
    seen = replace(SEEN, records=(A,), fabric_digest=b"other")
    assert decide(MADE, seen, hold).held
    assert decide(MADE, replace(seen, now=1010.0), hold).reason is Reason.FABRIC
