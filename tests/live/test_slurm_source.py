"""The queue of a real Slurm with 16 nodes on four leaves."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from sar_agent.errors import Unavailable
from sar_agent.jobs.filter import multi_switch
from sar_agent.jobs.record import JobRecord
from sar_agent.slurm.squeue import SqueueSource
from sar_agent.slurm.squeue_json import parse_squeue_json
from sar_agent.slurm.states import STATES
from sar_agent.slurm.topology_conf import read_topology_conf
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


def every_kind_of_job(slurm: SlurmCluster) -> tuple[str, str, str, set[str]]:
    """A wide job, one of two components, a suspended one; the names of all that hold nodes."""
    wide = slurm.salloc("n[001-002,005,009-010]", "--comment=a|b sar:ring")
    het = slurm.salloc("n003", ":", "-N1", "-w", "n007")
    array = slurm.run("sbatch", "--parsable", "--array=0-4%2", "-N1", "--wrap", "sleep 600").strip()
    slurm.run("sbatch", "--parsable", "--hold", "-N2", "--wrap", "true")
    stopped = slurm.salloc(2)
    slurm.run("scontrol", "suspend", stopped)
    wanted = {wide, het, stopped, f"{array}_0", f"{array}_1"}
    assert wait_until(lambda: set(jobs()) == wanted, 30)
    return wide, het, stopped, wanted


def as_json(slurm: SlurmCluster) -> dict[str, JobRecord]:
    return {job.id: job for job in parse_squeue_json(slurm.run("squeue", "--json"))}


def test_squeue_and_its_json_give_equal_records_of_every_kind_of_job(slurm):
    wide, het, stopped, wanted = every_kind_of_job(slurm)
    assert wait_until(lambda: jobs() == as_json(slurm), 10)  # also start times, to the second
    seen = as_json(slurm)
    assert seen[wide].hosts == ("n001", "n002", "n005", "n009", "n010")
    assert seen[wide].traffic == "ring" and seen[stopped].state == "SUSPENDED"
    assert (seen[het].hosts, seen[het].numbers) == (("n003", "n007"), (het, str(int(het) + 1)))
    numbers = {seen[task].numbers[0] for task in wanted if "_" in task}
    assert len(numbers) == 2, "a task's own number, by which hooks know it"
    assert {job.uid for job in seen.values()} == {os.getuid()}
    topology = read_topology_conf(slurm.topology_conf)
    assert not topology.problems
    assert {wide, het} <= {job.id for job in multi_switch(seen.values(), topology.leaf_of).jobs}

    slurm.run("scontrol", "update", f"jobid={wide}", "admincomment=sar:bitcomp")
    assert as_json(slurm)[wide].traffic == "bitcomp", "only JSON shows it"
    slurm.run("scontrol", "resume", stopped)
    slurm.scancel(wide)
    assert wait_until(lambda: jobs() == as_json(slurm), 10)
    assert wide not in as_json(slurm)


POLL = """
import pickle, sys
from sar_agent.slurm.pyslurm_source import PyslurmSource
poll = PyslurmSource().poll()
sys.stdout.buffer.write(pickle.dumps((poll.records, poll.skipped)))
"""


def records_of_pyslurm(slurm: SlurmCluster) -> dict[str, JobRecord]:
    """In a process of its own: libslurm reads slurm.conf once, and may end its process."""
    done = subprocess.run([sys.executable, "-c", POLL], env=slurm.env(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    found, skipped = pickle.loads(done.stdout)
    assert not skipped
    return {job.id: job for job in found}


@pytest.mark.skipif(find_spec("pyslurm") is None, reason="no pyslurm for this Slurm is installed")
def test_a_real_pyslurm_gives_the_records_of_squeue(slurm):
    """pyslurm must be built for the Slurm that is installed, and no registry has it for Debian's:
    `git clone` of github.com/PySlurm/pyslurm at the tag of the release (v22.5.3, v24.11.0),
    `pip install` in a venv, that folder in PYTHONPATH."""
    wide, *_ = every_kind_of_job(slurm)
    assert wait_until(lambda: jobs() == records_of_pyslurm(slurm), 10)
    assert records_of_pyslurm(slurm)[wide].traffic == "ring"
    slurm.scancel(wide)
    assert wait_until(lambda: jobs() == records_of_pyslurm(slurm), 10)


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
