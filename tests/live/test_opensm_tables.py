"""The lab's recorded tables are those that OpenSM makes today."""

from __future__ import annotations

import numpy as np
import pytest

from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options
from sar_agent.routing.routes import NO_ROUTE
from sar_lab.opensm_tables import lab_engine
from tests.bench.record_opensm import ENGINES, SPECS, tables

pytestmark = pytest.mark.live
SOME = [
    *((SPECS[0], engine) for engine in ENGINES),
    *(pytest.param(spec, "updn", marks=pytest.mark.long) for spec in SPECS[1:]),
]


@pytest.mark.parametrize(("spec", "engine"), SOME)
def test_recorded(spec: str, engine: str) -> None:
    fabric = load_fabric(spec)
    recorded = lab_engine(f"opensm-{engine}").route(fabric, JobMix(()), Options())
    held = tables(fabric, engine).routes
    theirs = held.egress[0, : fabric.terminals]
    routed = theirs != NO_ROUTE
    assert np.array_equal(recorded.egress[0, : fabric.terminals][routed], theirs[routed])
