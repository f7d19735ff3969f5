"""`minhop` makes the tables that a stock OpenSM makes, entry by entry, on damaged fabrics, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_agent.routing.before import assumed_engine
from sar_lab.opensm_tables.simulated import simulated_routes
from tests.worlds.minhop_fabrics import SMALL, compared, damaged

pytestmark = pytest.mark.live


@pytest.mark.parametrize(("spec", "cables"), SMALL)
def test_equal_entries(spec: str, cables: int) -> None:
    assert compared(load_fabric(spec))[2] == 1.0


@pytest.mark.parametrize(("spec", "cables"), SMALL)
def test_equal_entries_with_cables_out(spec: str, cables: int) -> None:
    assert compared(damaged(load_fabric(spec), cables))[2] == 1.0


@pytest.mark.parametrize(("spec", "engine"), [("xgft:2;4,6;1,3", "opensm-ftree"),
                                              ("torus:3x3", "minhop")])  # fmt: skip
def test_what_is_assumed_is_what_openSM_makes(
    spec: str, engine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SAR_ASK_OPENSM")
    fabric = load_fabric(spec)
    for _ in range(2):  # the second time from what was kept
        assert assumed_engine(fabric).engine == engine
    made = load_engine(engine).route(fabric, JobMix(()), Options())
    theirs = simulated_routes(fabric, engine.removeprefix("opensm-"), {}, 60)
    assert (made.egress[0] == theirs.egress[0]).all()
