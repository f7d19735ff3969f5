"""A squeue that succeeds and shows nothing, beside Slurm's own sinfo: the jobs still run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sar_lab.live.process import wait_until
from sar_lab.live.slurm import SlurmCluster
from tests.worlds.live import readback
from tests.worlds.live.loop import LoopSite, loop_site

pytestmark = pytest.mark.live
POLLS = 30
"""Empty answers: those of a minute at two seconds each."""
_SQUEUE = """#!/bin/sh
[ -e '{flag}' ] || exec squeue "$@"
echo >> '{flag}'
"""


class Quiet:
    """squeue, but for the time for which it shows no job; sinfo beside it is the real one."""

    def __init__(self, folder: Path) -> None:
        self.flag, self.squeue = folder / "quiet", folder / "site-squeue"
        self.squeue.write_text(_SQUEUE.format(flag=self.flag))
        self.squeue.chmod(0o755)
        sinfo = shutil.which("sinfo")
        assert sinfo
        (folder / "site-sinfo").symlink_to(sinfo)

    def answers(self, count: int) -> bool:
        """Whether so many empty answers more were given in time."""
        wanted = self.flag.stat().st_size + count
        return wait_until(lambda: self.flag.stat().st_size >= wanted, 4 * count)


def installed(site: LoopSite) -> int:
    return sum(row.result == "installed" for row in site.rows())


def test_empty_answers_change_no_entry_until_the_jobs_have_ended(
    tmp_path: Path, slurm: SlurmCluster
) -> None:
    """Two of them, two seconds apart, replaced all routes."""
    with loop_site(tmp_path, slurm) as site:
        quiet = Quiet(tmp_path)
        site.settings["slurm"]["squeue"] = [str(quiet.squeue)]
        slurm.salloc("n[001,005,009]")
        slurm.salloc("n[002,006,010,014]")
        site.start()
        site.wait_installed()
        assert wait_until(lambda: site.metrics()["sar_agent_multi_switch_jobs",] == 2, 30)
        site.assert_plan_installed()
        state, tables, count = site.state(), readback.installed(site.fabric), installed(site)
        assert state and len(state.jobs) == 2 and count == 1

        quiet.flag.touch()
        assert quiet.answers(POLLS), site.log()
        assert "the queue shows no job any more, but n001, n002, n005 and 4 more are allocated" in (
            site.log()
        )
        assert readback.installed(site.fabric) == tables
        assert site.state() == state and installed(site) == count

        slurm.run("scancel", "--user=root")  # nothing else says so to squeue's readers
        generation = site.wait_installed(state.generation).generation_in_force
        after = site.state()
        assert after and not after.jobs and after.generation == generation

        slurm.salloc("n[001,005,009]")
        quiet.flag.unlink()
        site.wait_installed(generation)
        after = site.state()
        assert after and after.jobs == {frozenset({"n001", "n005", "n009"})}
