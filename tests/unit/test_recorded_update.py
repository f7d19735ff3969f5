"""Figs. 6 and 9 of sar-2016: the record of an update, and claims that other records would fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sar_agent.fabric.spec import load_fabric
from sar_lab.research.papers import sar_fig6, sar_fig9
from sar_lab.research.recorded_update import (
    TESTBED,
    RecordedUpdate,
    path_channels,
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


def test_paths_of_the_record_by_hand() -> None:
    """Hosts 1 and 3 are at different switches; ports 3 and 4 are the two cables."""
    update, fabric = recorded_update(), load_fabric(TESTBED)
    ports = {
        (when, offset): [
            int(fabric.channel_port[c])
            for c in path_channels(fabric, update.tables[when][offset], 1, 3)
        ]
        for when in ("before", "after")
        for offset in (0, 1)
    }
    assert ports == {("before", 0): [3], ("before", 1): [4], ("after", 0): [4], ("after", 1): [4]}
    lost = [[255] * fabric.terminals] * fabric.switches
    with pytest.raises(ValueError, match="no path from terminal 1 to 3"):
        path_channels(fabric, lost, 1, 3)


def test_the_stream_fills_a_cable_and_none_is_lost() -> None:
    """1 MiB at 32 Gbit/s takes 262 µs; with pauses the same messages come later."""
    plain, drained = sar_fig9.series(drain=False), sar_fig9.series(drain=True)
    assert sar_fig9.message_seconds() == pytest.approx(8 * 2**20 / 32e9, rel=0.01)
    assert np.median(plain.total) == pytest.approx(32, rel=0.01)
    pauses = sum(b - a for a, b in sar_fig9._moves())
    lost = (plain.total.sum() - drained.total.sum()) * sar_fig9.EVERY / 32
    assert lost == pytest.approx(pauses, abs=2 * sar_fig9.EVERY)
