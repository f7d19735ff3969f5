"""Recorded tables of OpenSM: which there are, and that they are routes."""

from __future__ import annotations

import numpy as np
import pytest

from sar_agent.check import check_routes
from sar_agent.errors import Unserved
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options
from sar_agent.routing.routes import NO_ROUTE
from sar_lab.opensm_tables import lab_engine, recorded_path
from tests.bench.record_opensm import ENGINES, SPECS

NOBODY = JobMix(())


@pytest.mark.parametrize("spec", SPECS)
def test_all_that_the_rows_need_is_recorded(spec: str) -> None:
    fabric = load_fabric(spec)
    for engine in ENGINES:
        routes = lab_engine(f"opensm-{engine}").route(fabric, NOBODY, Options())
        assert check_routes(fabric, routes).unreachable_pairs == 0
        own = lab_engine(engine).route(fabric, NOBODY, Options())
        assert own.engine == engine != routes.engine == f"opensm-{engine}"
        same = (routes.egress == own.egress)[0, : fabric.terminals]
        if engine == "minhop":
            assert same.all(), "entry by entry as OpenSM's"
        elif engine == "updn" and spec.startswith("standin"):
            assert same.mean() < 0.9, "ties differ"


def test_each_record_is_of_the_engine_itself() -> None:
    """Where one refuses a fabric, OpenSM takes min-hop instead; with roots, none does."""
    for spec in SPECS:
        for engine in ENGINES:
            with np.load(recorded_path(load_fabric(spec), engine)) as kept:
                assert str(kept["used"]) == engine
                assert (kept["egress"][:, load_fabric(spec).leaves] != NO_ROUTE).all()


def test_a_fabric_without_a_record_is_refused() -> None:
    with pytest.raises(Unserved, match="no tables of OpenSM's updn are recorded"):
        lab_engine("opensm-updn").route(load_fabric("xgft:2;4,4;1,4"), NOBODY, Options())
