"""A stock OpenSM without our plugin: its engine `file` installs what the agent writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_agent.opensm.file_lfts import read_lfts_file
from sar_lab.live.process import wait_until
from sar_lab.live.slurm import SlurmCluster
from tests.worlds.live import readback
from tests.worlds.live.loop import LoopSite, loop_site

pytestmark = pytest.mark.live


@contextmanager
def file_site(
    folder: Path, slurm: SlurmCluster, *, engine: str = "file,updn", asks: bool = False, **loop: Any
) -> Iterator[LoopSite]:
    """OpenSM with `engine`; the agent writes `lfts`. `asks`: it reads back from the switches."""
    lfts = folder / "lfts"
    options = {"lfts_file": str(lfts), "qos": "FALSE", "lmc": "0"}
    with loop_site(
        folder, slurm, plugin=None, routing_engine=engine, options=options, **loop
    ) as site:
        pid_file = folder / "opensm.pid"
        pid_file.write_text(f"{site.sm.pid}\n")
        site.settings["opensm"] = {
            "method": "file",
            "lfts_file": str(lfts),
            "pid_file": str(pid_file),
            "poll_seconds": 0.1,
            "load_deadline_seconds": 60,
        }
        if asks:
            site.settings["opensm"]["read_back_command"] = ["dump_fts"]
        else:
            site.settings["opensm"]["lfts_dump"] = str(site.sm.dump_dir / "opensm-lfts.dump")
        yield site


def in_switches(site: LoopSite) -> bool:
    """Whether switches have the plan, entry for entry, by what they answer to dump_fts."""
    state = site.state()
    if state is None:
        return False
    wanted = readback.wanted(site.plan(), readback.lids(site.sm.folder / "cache"))
    return bool(wanted) and readback.installed(site.fabric) == wanted


def wait_generation(site: LoopSite, above: int = 0) -> int:
    def there() -> bool:
        state = site.state()
        return state is not None and state.generation > above and in_switches(site)

    assert wait_until(there, 60, 0.3), site.log()
    state = site.state()
    assert state
    return state.generation


def restart(site: LoopSite) -> None:
    """OpenSM dies and comes back, with another process number."""
    site.sm.kill()
    site.sm.start().wait_up()
    (site.folder / "opensm.pid").write_text(f"{site.sm.pid}\n")


@pytest.mark.parametrize("asks", [False, pytest.param(True, marks=pytest.mark.long)])
def test_jobs_come_and_go_and_routes_follow(
    tmp_path: Path, slurm: SlurmCluster, asks: bool
) -> None:
    with file_site(tmp_path, slurm, asks=asks) as site:
        jobs = [slurm.salloc(nodes) for nodes in ("n[001,005,009]", "n[002,006,010]")]
        site.start()
        first = wait_generation(site)
        before = site.plan()
        slurm.scancel(jobs[0])
        slurm.salloc("n[007-008,011-012,014-015]")
        wait_generation(site, first)

        def both_jobs_are_routed() -> bool:  # a pass may have come between the end and the start
            newest = site.rows()[0]
            in_force = f"in force   engine sar, generation {newest.generation}"
            return newest.jobs == 2 and in_force in site.cli("status").stdout

        assert wait_until(both_jobs_are_routed, 60, 0.3), site.log()
        assert not np.array_equal(site.plan().forwarding, before.forwarding)
        assert {row.reason for row in site.rows() if row.result == "installed"} >= {
            "first",
            "jobs_changed",
        }

        # OpenSM keeps the dead link in its tables until the agent has written others.
        leaf = site.plan().switch_guids.tolist().index(0x8F10401000000)
        site.fabric.unlink("S1-0", 5)

        def around_the_dead_link() -> bool:
            return not (site.plan().forwarding[:, leaf] == 5).any() and in_switches(site)

        assert wait_until(around_the_dead_link, 60, 0.3), site.log()
        third = wait_generation(site)

        restart(site)
        assert wait_until(lambda: in_switches(site), 30, 0.3)
        assert wait_generation(site) == third, "OpenSM came back with the same routes"
        assert "Traceback" not in site.log()


def test_the_file_is_missing_and_then_somebody_elses(tmp_path: Path, slurm: SlurmCluster) -> None:
    with file_site(tmp_path, slurm) as site:
        slurm.salloc("n[001,005,009]")
        site.start()
        first = wait_generation(site)
        lfts = tmp_path / "lfts"
        ours = lfts.read_bytes()

        lfts.unlink()
        site.sm.sweep()  # updn routes, and the agent replaces its tables
        second = wait_generation(site, first)
        assert read_lfts_file(lfts), "it was written again"
        assert site.rows()[0].reason == "fallback_engine_in_force"

        text = ours[ours.index(b"Unicast") :]
        lfts.write_bytes(text)
        slurm.salloc("n[002,006,010]")
        assert wait_until(lambda: "was not written by sar-agent" in site.log(), 30)
        assert lfts.read_bytes() == text, "it stays as it is"
        lfts.unlink()
        third = wait_generation(site, second)
        assert read_lfts_file(lfts) and third > second


def test_an_opensm_that_ignores_the_file_is_noticed(tmp_path: Path, slurm: SlurmCluster) -> None:
    with file_site(tmp_path, slurm, engine="updn") as site:
        slurm.salloc("n[001,005,009]")
        before = readback.installed(site.fabric)
        done = site.cli("once")
        assert done.returncode == 1
        assert "OpenSM has not loaded it: it needs routing_engine file" in done.stderr
        assert not (tmp_path / "lfts").exists() and readback.installed(site.fabric) == before
