"""No repair serves, because all paths would have to lead through a switch that the plan does not
have: the agent is asked within OpenSM's routing, and its routes come into force before another
engine could make any."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_lab.live.process import wait_until
from sar_lab.live.slurm import SlurmCluster
from tests.worlds.live.loop import loop_site

pytestmark = pytest.mark.live
FALLBACK = "the next routing engine takes over"


def test_the_only_spine_of_the_plan_dies_when_another_has_come_back(tmp_path: Path) -> None:
    opensm = {"routing_engine": "sar,updn", "more_plugin_options": "repair_wait=10"}
    with (
        SlurmCluster("n[001-016]", leaf_size=4) as slurm,
        loop_site(tmp_path, slurm, **opensm) as site,
    ):
        slurm.salloc("n[001,005,009]")
        site.fabric.clear("S2-1")
        site.sm.sweep()
        assert wait_until(lambda: site.bridge.status().switches == 5, 30)
        site.start(reoptimise_seconds=3600)
        site.wait_installed()
        assert site.bridge.status().switches == 5

        fallbacks = site.sm.log().count(FALLBACK)
        site.fabric.relink("S2-1")
        site.sm.sweep()
        status = site.bridge.status()
        engines = {status.engine_in_force}
        assert wait_until(lambda: site.rows()[0].reason == "amended", 60, 0.1), site.rows()
        site.fabric.clear("S2-0")
        site.sm.sweep()

        def there() -> bool:
            status = site.bridge.status()
            engines.add(status.engine_in_force)
            return status.switches == 5 and status.settled and status.repair_calls_answered > 0

        assert wait_until(there, 60, 0.01), (site.bridge.status(), site.log())
        assert engines == {"sar"} and site.sm.log().count(FALLBACK) == fallbacks
        assert "within" not in site.bridge.status().last_error
        assert wait_until(lambda: site.rows()[0].reason == "fabric_changed", 30), site.rows()
        assert "cannot repair the routes itself, and waits" in site.log()
