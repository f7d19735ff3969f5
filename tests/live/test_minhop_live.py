"""`minhop` makes the tables that a stock OpenSM makes, entry by entry, on damaged fabrics, too."""

from __future__ import annotations

import pytest

from sar_agent.fabric.spec import load_fabric
from tests.worlds.minhop_fabrics import SMALL, compared, damaged

pytestmark = pytest.mark.live


@pytest.mark.parametrize(("spec", "cables"), SMALL)
def test_equal_entries(spec: str, cables: int) -> None:
    assert compared(load_fabric(spec))[2] == 1.0


@pytest.mark.parametrize(("spec", "cables"), SMALL)
def test_equal_entries_with_cables_out(spec: str, cables: int) -> None:
    assert compared(damaged(load_fabric(spec), cables))[2] == 1.0
