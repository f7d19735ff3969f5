"""What engines say of themselves: whether they know jobs, and whether they route by source."""

from __future__ import annotations

import numpy as np
import pytest

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import (
    Options,
    Routes,
    engine_names,
    is_source_routed,
    knows_jobs,
    load_engine,
)


class Silent:
    """A third party's engine that says neither."""

    name = "silent"
    summary = ""

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        return Routes(self.name, fabric.digest, np.zeros((1, 0, 0), np.uint8))


def test_an_engine_that_says_neither_counts_as_false() -> None:
    assert not knows_jobs(Silent()) and not is_source_routed(Silent())


@pytest.mark.parametrize("name", engine_names())
def test_only_engines_by_source_have_paths(name: str) -> None:
    engine = load_engine(name)
    assert is_source_routed(engine) == hasattr(engine, "paths")


@pytest.mark.parametrize("name", ["minhop", "updn", "ftree", "dmodk", "dfsssp", "sar", "sar-plus"])
def test_routes_of_engines_that_know_jobs_name_them(name: str) -> None:
    fabric = load_fabric("xgft:2;4,4;1,2")
    engine = load_engine(name)
    routes = engine.route(fabric, synthetic_mix(fabric, 1), Options())
    assert bool(routes.jobs_digest) == knows_jobs(engine)
