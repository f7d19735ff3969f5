"""Switches die, the agent plans without them as jobs change, and they come back: no other engine is
in force at any moment, and no entry of another switch changes for a destination that was there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from sar_agent.errors import SarError
from sar_lab.live.process import wait_until
from sar_lab.live.slurm import SlurmCluster
from tests.worlds.live import readback
from tests.worlds.live.loop import LoopSite, loop_site

pytestmark = pytest.mark.live
FALLBACK = "the next routing engine takes over"


@contextmanager
def only_our_engine(site: LoopSite) -> Iterator[None]:
    """Asks all the time which engine is in force, and reads OpenSM's log in the end."""
    before, engines, over = site.sm.log().count(FALLBACK), set[str](), threading.Event()

    def look() -> None:
        while not over.wait(0.01):
            with suppress(SarError):
                engines.add(site.bridge.status().engine_in_force)

    watch = threading.Thread(target=look)
    watch.start()
    try:
        yield
    finally:
        over.set()
        watch.join()
    assert engines == {"sar"} and site.sm.log().count(FALLBACK) == before, site.sm.log()[-3000:]


def settled(site: LoopSite, switches: int) -> bool:
    status = site.bridge.status()
    return status.switches == switches and status.settled


@contextmanager
def installed(folder: Path, repair_wait: int) -> Iterator[LoopSite]:
    opensm = {
        "routing_engine": "sar,updn",
        "more_plugin_options": f"repair_wait={repair_wait}",
    }
    with (
        SlurmCluster("n[001-016]", leaf_size=4) as slurm,
        loop_site(folder, slurm, **opensm) as made,
    ):
        slurm.salloc("n[001,005,009]")
        made.start(reoptimise_seconds=3600)
        made.wait_installed()
        made.assert_plan_installed()
        yield made


@pytest.fixture
def site(tmp_path: Path) -> Iterator[LoopSite]:
    """The plugin mends it without the agent's help."""
    with installed(tmp_path, 0) as made:
        yield made


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[LoopSite]:
    with installed(tmp_path, 10) as made:
        yield made


@pytest.mark.parametrize("name", ["S1-3", pytest.param("S2-1", marks=pytest.mark.long)])
def test_it_comes_back_to_a_plan_that_has_it(site: LoopSite, name: str) -> None:
    """No job changes meanwhile, so the plan in force stays: each switch has its entries again."""
    first, rows = site.bridge.status(), len(site.rows())
    tables = readback.installed(site.fabric)
    with only_our_engine(site):
        site.fabric.clear(name)
        assert wait_until(lambda: settled(site, 5), 60, 0.05), site.bridge.status()
        assert wait_until(lambda: len(site.rows()) > rows, 60, 0.1), site.log()
        assert site.rows()[0].result == "followed", site.rows()[0]
        site.fabric.relink(name)
        site.sm.sweep()
        assert wait_until(lambda: settled(site, 6), 60, 0.05), site.bridge.status()
        assert wait_until(lambda: readback.installed(site.fabric) == tables, 30, 0.2)
    assert site.bridge.status().generation_in_force == first.generation_in_force
    site.assert_plan_installed()


@pytest.mark.parametrize("name", [pytest.param("S1-3", marks=pytest.mark.long), "S2-1"])
def test_it_comes_back_to_a_plan_that_does_not_have_it(asked: LoopSite, name: str) -> None:
    """OpenSM asks the agent. On a busy machine it may go on to its next engine before the agent has
    answered; in the end, a plan with the switch is in force."""
    site = asked
    with only_our_engine(site):
        site.fabric.clear(name)
        assert wait_until(lambda: settled(site, 5), 60, 0.05), site.bridge.status()
        site.slurm.salloc("n[002,006,010]")
        assert wait_until(lambda: site.rows()[0].reason == "jobs_changed", 60, 0.1), site.log()
        assert len(site.plan().switch_guids) == 5
    site.fabric.relink(name)
    site.sm.sweep()

    def planned() -> bool:
        status = site.bridge.status()
        ours = status.engine_in_force == "sar" and settled(site, 6)
        return ours and len(site.plan().switch_guids) == 6

    assert wait_until(planned, 90, 0.2), (site.bridge.status(), site.log())
    assert "the agent is asked" in site.sm.log()
    assert "cannot repair the routes itself, and waits" in site.log()
    site.slurm.salloc("n[003,007,011]")
    assert wait_until(lambda: site.rows()[0].reason == "jobs_changed", 60, 0.1), site.log()
    site.assert_plan_installed()
