"""The loop closes: real Slurm jobs change the routes of a real, stock OpenSM."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sar_agent.lab.live.process import wait_until
from sar_agent.lab.live.slurm import SlurmCluster
from tests.live.helpers import readback
from tests.live.helpers.loop import LoopSite, loop_site

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    with SlurmCluster("n[001-016]", leaf_size=4) as cluster:
        yield cluster


@pytest.fixture
def slurm(cluster: SlurmCluster) -> Iterator[SlurmCluster]:
    yield cluster
    cluster.run("scancel", "--user=root")
    assert wait_until(lambda: not cluster.squeue("-h"), 30)


@pytest.fixture
def site(tmp_path: Path, slurm: SlurmCluster) -> Iterator[LoopSite]:
    with loop_site(tmp_path, slurm) as made:
        yield made


def reasons(site: LoopSite) -> list[str]:
    return [row.reason for row in site.rows() if row.result == "installed"]


def test_jobs_change_the_routes_and_a_dead_link_is_survived(site: LoopSite) -> None:
    slurm = site.slurm
    jobs = [slurm.salloc(nodes) for nodes in ("n[001,005,009]", "n[002,006,010]", "n[003-004,013]")]
    site.start()
    first = site.wait_installed()
    assert reasons(site) == ["first"]
    site.assert_plan_installed()
    assert site.metrics()["sar_multi_switch_jobs",] == 3
    before = site.plan()

    slurm.scancel(jobs[0])
    slurm.salloc("n[007-008,011-012,014-015]")
    second = site.wait_installed(first.generation_in_force)
    assert wait_until(lambda: site.metrics()["sar_multi_switch_jobs",] == 3, 30)
    site.wait_installed(first.generation_in_force)
    site.assert_plan_installed()
    assert set(reasons(site)[:-1]) == {"jobs_changed"}
    assert not np.array_equal(site.plan().forwarding, before.forwarding)

    generation = site.wait_installed().generation_in_force
    sweeps = site.bridge.status().heavy_sweeps
    site.fabric.unlink("S1-0", 5)
    assert wait_until(lambda: site.metrics().get(("sar_engine_in_force", "dfsssp")) == 1, 30, 0.05)
    assert site.bridge.status().heavy_sweeps <= sweeps + 2, "one sweep for each end's trap"
    status = site.wait_installed(generation)
    assert status.engine_in_force == "sar"
    site.assert_plan_installed()
    assert "fallback_engine_in_force" in reasons(site)
    plan = site.plan()
    leaf = plan.switch_guids.tolist().index(0x8F10401000000)
    assert not (plan.forwarding[:, leaf] == 5).any(), "nothing goes over the dead link"
    assert second.generation_in_force < status.generation_in_force

    assert_no_credit_loop(site)


def assert_no_credit_loop(site: LoopSite) -> None:
    """By ibdmchk, from what OpenSM dumps of what it installed."""
    sweeps = site.bridge.status().heavy_sweeps
    for old in site.sm.dump_dir.iterdir():
        old.unlink()
    site.sm.sweep()
    dump = site.sm.dump_dir
    needed = [dump / name for name in ("opensm-subnet.lst", "opensm.fdbs", "opensm.mcfdbs")]
    assert wait_until(
        lambda: site.bridge.status().heavy_sweeps > sweeps and all(p.exists() for p in needed), 30
    )
    run = site.fabric.run(
        "ibdmchk", "-s", str(needed[0]), "-f", str(needed[1]), "-m", str(needed[2])
    )
    assert "no credit loops found" in run.stdout, run.stdout
