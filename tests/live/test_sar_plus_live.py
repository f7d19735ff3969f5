"""sar-plus in the live loop: small changes are recorded with their gain; a restart continues from
the routes in force."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sar_lab.live.process import wait_until
from sar_lab.live.slurm import SlurmCluster
from tests.live.helpers.loop import LoopSite, loop_site
from tests.live.test_loop import assert_no_credit_loop

pytestmark = pytest.mark.live
ENTRIES = 6 * 22


@pytest.fixture
def site(tmp_path: Path) -> Iterator[LoopSite]:
    with (
        SlurmCluster("n[001-016]", leaf_size=4) as cluster,
        loop_site(tmp_path, cluster) as made,
    ):
        yield made


def test_each_decision_tells_its_gain_and_its_changes(site: LoopSite) -> None:
    slurm = site.slurm
    slurm.salloc("n[001,005,009,013]")
    slurm.salloc("n[002,006]")
    agent = site.start(reoptimise_seconds=0.5)
    first = site.wait_installed()
    slurm.salloc("n[003-004,007-008,010]")
    second = site.wait_installed(first.generation_in_force)
    slurm.salloc("n[011-012,014-015]")
    third = site.wait_installed(second.generation_in_force)
    site.assert_plan_installed()
    assert_no_credit_loop(site)

    rows = [row for row in site.rows() if row.result == "installed"]
    assert {row.engine for row in rows} == {"sar-plus"}
    assert {row.reason for row in rows} <= {"first", "jobs_changed"}
    for row in rows[:-1]:  # the first one wrote tables that dfsssp had filled
        assert row.entries_changed is not None and row.entries_changed <= ENTRIES // 3
        assert row.before and row.predicted and row.achieved
        assert row.predicted["load_max"] <= row.before["load_max"]
        assert row.achieved == row.predicted
    code, told, _ = site.ask("history")
    assert code == 0
    assert "entries" in told and "→" in told, told

    # A fresh process, as cron starts it: from the tables in force, not from nothing.
    agent.terminate()
    assert agent.wait(30) == 0
    job = slurm.squeue("-h", "-o", "%i").split()[0]
    slurm.scancel(job)
    assert wait_until(lambda: job not in slurm.squeue("-h", "-o", "%i").split(), 30)
    done = site.cli("once")
    assert done.returncode == 0, done.stderr
    row = site.rows()[0]
    assert (row.reason, row.result) == ("jobs_changed", "installed")
    assert row.entries_changed is not None and row.entries_changed <= ENTRIES // 3
    assert site.bridge.status().generation_in_force > third.generation_in_force
    site.assert_plan_installed()
