"""Slurm's hooks, the agent's message server, OpenSM: jobs change the routes although polls are "
"rare."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sar_lab.live.process import PATIENCE, wait_until
from tests.worlds.live.built import built
from tests.worlds.live.loop import LoopSite, loop_site
from tests.worlds.live.spank import SpankCluster, spank_cluster

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def hook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PrologSlurmctld and EpilogSlurmctld; the agent's address is in a file beside it."""
    folder = tmp_path_factory.mktemp("hook")
    program = built("slurm_spank", "sar-notify")
    path = folder / "hook"
    path.write_text(
        f'#!/bin/sh\ncase "$SLURM_SCRIPT_CONTEXT" in prolog*) e=start;; *) e=end;; esac\n'
        f"exec {program} $e $(cat {folder}/arguments)\n"
    )
    path.chmod(0o755)
    (folder / "arguments").touch()
    return path


@pytest.fixture(scope="module")
def cluster(hook: Path) -> Iterator[SpankCluster]:
    with spank_cluster(extra=f"PrologSlurmctld={hook}\nEpilogSlurmctld={hook}\n") as cluster:
        cluster.arguments()
        yield cluster


@pytest.fixture
def site(tmp_path: Path, cluster: SpankCluster, hook: Path) -> Iterator[LoopSite]:
    with loop_site(tmp_path, cluster) as made:
        made.settings["agent"] |= {"interval_seconds": 1000, "debounce_seconds": 0}
        made.settings["events"] = {"munge_socket": str(cluster.munge_socket)}
        socket = made.sm.run_dir / "events.sock"
        hook.with_name("arguments").write_text(
            f"agent={socket} munge_socket={cluster.munge_socket}"
        )
        yield made
    cluster.run("scancel", "--user=root")
    assert wait_until(lambda: not cluster.squeue("-h"), 30)


def load(site: LoopSite) -> float:
    return site.metrics()["sar_agent_channel_load_max", "planned"]


def test_jobs_come_and_go_and_say_what_they_send(site: LoopSite) -> None:
    site.start()
    first = site.wait_installed()
    job = site.slurm.salloc("n[001,005,009]")
    second = site.wait_installed(first.generation_in_force)
    site.assert_plan_installed()
    assert wait_until(lambda: site.metrics()["sar_agent_multi_switch_jobs",] == 1, 20)
    full = load(site)

    site.slurm.scancel(job)
    third = site.wait_installed(second.generation_in_force)
    assert wait_until(lambda: site.metrics()["sar_agent_multi_switch_jobs",] == 0, 20)

    site.slurm.salloc("n[001,005,009]", "--sar-traffic=weight=0.25")
    site.wait_installed(third.generation_in_force)
    assert wait_until(lambda: load(site) == pytest.approx(full / 4), 20), site.log()
    status = json.loads(site.ask("status", "--json")[1])
    assert status["events"]["events"] == {"start": 2, "end": 1}
    assert status["events"]["refused"] == {}


def test_a_step_s_hint_reaches_the_job(site: LoopSite, cluster: SpankCluster, hook: Path) -> None:
    """By SPANK on the nodes alone: no hook of the controller speaks, srun inside a job does."""
    hook.with_name("arguments").write_text("")
    cluster.arguments(agent=site.sm.run_dir / "events.sock")
    site.start()
    first = site.wait_installed()
    job = cluster.salloc("n[002,006]")
    site.wait_installed(first.generation_in_force)
    done = cluster.attempt("srun", f"--jobid={job}", "-N2", "--sar-traffic=weight=0.5", "true")
    assert done.returncode == 0, done.stderr
    hints = site.state_dir / "hints.json"
    assert wait_until(lambda: hints.exists() and job in hints.read_text(), 20), site.log()
    assert [h["traffic"] for h in json.loads(hints.read_text())] == ["weight=0.5"]
    cluster.arguments()


def test_after_everything_was_away_it_converges_by_itself(
    site: LoopSite, cluster: SpankCluster
) -> None:
    """Events are lost meanwhile: the queue is the truth."""
    site.settings["agent"]["interval_seconds"] = 1
    site.settings["agent"]["min_install_interval_seconds"] = 5
    agent = site.start()
    site.wait_installed()
    agent.kill()  # and its socket stays behind
    agent.wait()
    cluster.salloc("n[001,005,009]")
    again = site.start()
    assert wait_until(lambda: routed_for(site) == {frozenset({"n001", "n005", "n009"})}, 60)

    cluster.stop_controller()
    try:
        assert wait_until(lambda: site.metrics()["sar_agent_slurm_reachable",] == 0, 60)
        site.sm.stop()
        assert wait_until(lambda: site.metrics()["sar_agent_sm_reachable",] == 0, 30)
    finally:
        cluster.start_controller()
    cluster.salloc("n[002,006]")
    time.sleep(2)
    assert os.waitpid(again.pid, os.WNOHANG) == (0, 0), site.log()
    site.sm.routes_path.unlink()
    site.sm.start().wait_up()
    both = {frozenset({"n001", "n005", "n009"}), frozenset({"n002", "n006"})}
    assert wait_until(lambda: routed_for(site) == both, 90), site.log()
    site.wait_installed()
    site.assert_plan_installed()
    assert "Traceback" not in site.log()


def routed_for(site: LoopSite) -> set[frozenset[str]]:
    state = site.state()
    in_force = state and site.bridge.status().generation_in_force == state.generation
    return set(state.jobs) if state and in_force else set()


def test_a_burst_of_starts_is_one_reroute(site: LoopSite, cluster: SpankCluster) -> None:
    quiet = 1.5 * PATIENCE  # on a busy machine the jobs come further apart
    most = 20 * PATIENCE
    site.settings["agent"] |= {"debounce_seconds": quiet, "debounce_max_seconds": most}
    site.settings["agent"] |= {"max_staleness_seconds": 3 * most}
    site.start()
    first = site.wait_installed()
    for n in range(1, 4):
        cluster.run("sbatch", "-N2", "-w", f"n{n:03d},n{n + 4:03d}", "--wrap", "sleep 600")
    second = site.wait_installed(first.generation_in_force)
    assert wait_until(lambda: site.metrics()["sar_agent_multi_switch_jobs",] == 3, 20)
    assert second.generation_in_force == first.generation_in_force + 1
    assert len(site.rows()) == 2
