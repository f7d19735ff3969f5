"""The whole agent over a day of counters on real fabrics: no false alert, and a bad cable with its
jobs within one window."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.telemetry.watch_metrics import CABLE_KINDS
from tests.data import data_path
from tests.worlds.observed_day import DAY, ObservedDay

CAPTURES = ("small-2014", "dgx-ndr", "selene-storage", "director-notabs", "psmn-x5")
FEW = 4
"""Windows in `make test`; the day is in `make test-long`."""


def observe(name: str, windows: int, folder: Path, patch: pytest.MonkeyPatch) -> None:
    day = ObservedDay(folder, data_path(f"{name}.ibnetdiscover"), patch)
    for _ in range(windows):
        day.step()
        for kind in CABLE_KINDS[:-1]:
            assert day.value("bad_cables", kind=kind) == 0, (kind, day.windows)
        for source in ("jobs", "fabric", "tables", "counters"):
            assert day.value("source_stale", source=source) == 0, (source, day.windows)
    assert day.events() == []
    assert day.value("counters_read_ratio") == 1
    c = day.busiest()
    over = day.over(c)
    day.step({c: 50})
    (row,) = day.events()
    assert row.result == "bad" and "symbol errors" in row.why
    assert set(row.message.removeprefix("jobs ").split(", ")) == over and over
    assert day.value("bad_cables_with_jobs", kind="errors") == 1
    assert day.value("bad_cable_jobs") == len(over)
    day.step()
    assert [row.result for row in day.events()] == ["well", "bad"]


@pytest.mark.data
@pytest.mark.parametrize("name", CAPTURES)
def test_windows_without_faults_have_no_alert_and_a_bad_cable_is_named_in_its_window(
    name, tmp_path, monkeypatch
):
    observe(name, FEW, tmp_path, monkeypatch)


@pytest.mark.data
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", CAPTURES)
def test_a_day_without_faults_has_no_alert_and_a_bad_cable_is_named_in_its_window(
    name, tmp_path, monkeypatch
):
    observe(name, DAY, tmp_path, monkeypatch)
