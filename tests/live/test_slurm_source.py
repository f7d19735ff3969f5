"""The queue of a real Slurm with 16 nodes on four leaves."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator

import pytest

from sar_agent.errors import Unavailable
from sar_agent.jobs.filter import multi_switch
from sar_agent.jobs.record import JobRecord
from sar_agent.slurm.squeue import SqueueSource
from sar_agent.slurm.squeue_json import parse_squeue_json
from sar_agent.slurm.states import STATES
from sar_agent.slurm.topology_conf import read_topology_conf
from sar_agent.slurm.topology_watch import TopologyWatcher
from sar_lab.live.process import wait_until
from sar_lab.live.slurm import SlurmCluster

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    with SlurmCluster("n[001-016]", leaf_size=4, shared=True) as cluster:
        yield cluster


@pytest.fixture
def slurm(slurm, monkeypatch) -> SlurmCluster:
    """The cluster, its SLURM_CONF in the environment as the agent has it."""
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    return slurm


def jobs() -> dict[str, JobRecord]:
    return {job.id: job for job in SqueueSource(deadline=30).poll().records}


def test_every_kind_of_job_in_both_forms(slurm):
    wide = slurm.salloc("n[001-002,005,009-010]", "--comment=a|b sar:ring")
    het = slurm.salloc("n003", ":", "-N1", "-w", "n007")
    array = slurm.run("sbatch", "--parsable", "--array=1-5%2", "-N1", "--wrap", "sleep 600").strip()
    slurm.run("sbatch", "--parsable", "--hold", "-N2", "--wrap", "true")
    tasks = {f"{array}_1", f"{array}_2"}
    assert wait_until(lambda: set(jobs()) == {wide, het} | tasks, 30)
    seen = jobs()
    assert seen[wide].hosts == ("n001", "n002", "n005", "n009", "n010")
    assert seen[wide].traffic == "ring"
    assert seen[het].hosts == ("n003", "n007")
    json = parse_squeue_json(slurm.run("squeue", "--json"))
    assert {job.id: job for job in json} == seen  # also the start times, to the second
    topology = read_topology_conf(slurm.topology_conf)
    assert {job.id for job in multi_switch(seen.values(), topology.leaf_of).jobs} == {wide, het}


def test_pending_jobs_have_the_nodes_that_backfill_plans(slurm):
    first = slurm.salloc("n[001-002,005]", "--exclusive", "--time=10")
    options = ("--exclusive", "--time=5", "--parsable", "--wrap", "true")
    later = slurm.run("sbatch", "-w", "n[002,006]", "-N2", *options).strip()
    held = slurm.run("sbatch", "--hold", "-N2", *options).strip()
    planned = lambda: {job.id: job for job in SqueueSource(deadline=30).poll().planned}  # noqa: E731
    assert wait_until(lambda: later in planned(), 90) and held not in planned()
    assert planned()[later].hosts == ("n002", "n006") and set(jobs()) == {first}
    assert planned()[later].start >= jobs()[first].start + 600
    slurm.scancel(first, later, held)


def test_an_empty_queue(slurm):
    assert jobs() == {}


def test_a_suspended_job_stays_and_a_cancelled_one_goes(slurm):
    job = slurm.salloc(2)
    slurm.run("scontrol", "suspend", job)
    assert jobs()[job].state == "SUSPENDED"
    slurm.run("scontrol", "resume", job)
    slurm.scancel(job)
    assert job not in jobs()


def test_a_comment_or_name_with_a_line_end_cannot_pose_as_a_job(slurm):
    fake = "x\n999|RUNNING|n[001-016]|batch|root|x|16|5|(null)"
    job = slurm.salloc(2, f"--comment={fake}", f"--job-name={fake}")
    found = jobs()
    assert set(found) == {job}


def test_settings_of_the_caller_do_not_change_the_answer(slurm, monkeypatch):
    job = slurm.salloc(2)
    monkeypatch.setenv("SQUEUE_USERS", "nobody")
    monkeypatch.setenv("SQUEUE_FORMAT", "%i")
    assert set(jobs()) == {job}


def test_states_in_the_terms_of_this_slurm(slurm):
    known = subprocess.run(["squeue", "--states=none"], capture_output=True, text=True).stderr
    words = known.partition("include: ")[2].strip().upper().split(",")  # small letters since 24.05
    assert len(words) > 20 and set(words) <= STATES


def test_a_controller_that_is_down_and_comes_back(slurm):
    job = slurm.salloc(2)
    slurm.stop_controller()
    try:
        with pytest.raises(
            Unavailable, match=r"Unable to contact slurm controller|no answer within 4"
        ):
            SqueueSource(deadline=4).poll()
        with pytest.raises(Unavailable, match="Unable to contact slurm controller"):
            SqueueSource(deadline=12).poll()
    finally:
        slurm.start_controller()
    assert wait_until(lambda: set(jobs()) == {job}, 30)


def test_an_edited_topology_is_seen(slurm):
    text = slurm.topology_conf.read_text()
    event = threading.Event()
    with TopologyWatcher(slurm.topology_conf, on_event=event.set) as watcher:
        assert watcher.topology.leaf_of("n004") == {"leaf1"}
        swapped = text.replace("n004", "nXXX").replace("n005", "n004").replace("nXXX", "n005")
        slurm.topology_conf.write_text(swapped)
        slurm.run("scontrol", "reconfigure")
        assert event.wait(10)
        assert watcher.changed()
        assert watcher.topology.leaf_of("n004") == {"leaf2"}
    real = slurm.run("scontrol", "show", "topology")
    assert "SwitchName=leaf2" in real
    slurm.topology_conf.write_text(text)
    slurm.run("scontrol", "reconfigure")
