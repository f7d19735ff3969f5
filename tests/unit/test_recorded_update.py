"""Figs. 6 and 9 of sar-2016: the record of an update, and claims that other records would fail."""

from __future__ import annotations

from dataclasses import replace

from sar_lab.research.papers import sar_fig6
from sar_lab.research.recorded_update import (
    RecordedUpdate,
    recorded_update,
)


def failing(update: RecordedUpdate) -> list[str]:
    """The numbers of the phases whose claims do not hold."""
    return [claim.says[0] for claim in sar_fig6._claims(update) if not claim.holds]


def moved(update: RecordedUpdate, event: str, at: float, **fields: object) -> RecordedUpdate:
    """The record with another time of these events."""
    wanted = {"event": event, **fields}
    events = [e | {"at": at} if wanted.items() <= e.items() else e for e in update.events]
    return replace(update, events=events)


def test_the_record_holds_every_claim_and_a_wrong_order_fails_its_own() -> None:
    update = recorded_update()
    assert not failing(update)
    begun, ended = update.changing()
    assert failing(moved(update, "notice", ended + 1, phase="unpath")) == ["1"]
    assert failing(moved(update, "moved", begun + 1e-6, offset=1)) == ["2"]
    assert failing(moved(update, "move", begun, offset=0)) == ["4"]
    late = update.times("coordinator", "idle")[0] + 1
    assert failing(moved(update, "ack", late, party="coordinator", phase="repath")) == ["5"]
    before, after = update.tables["before"], update.tables["after"]
    same = replace(update, tables={"before": before, "after": before})
    assert failing(same) == ["3"]
    swapped = replace(update, tables={"before": before, "after": after[::-1]})
    assert "3" not in failing(update) and len(failing(swapped)) <= 1
