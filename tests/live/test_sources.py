"""squeue, `squeue --json` and pyslurm on one live cluster: equal records.

pyslurm must be built for the Slurm that is installed, and no registry has it for Debian's. Its test
runs where `import pyslurm` would find one: `git clone` of github.com/PySlurm/pyslurm at the tag of
the release (v22.5.3, v24.11.0), `pip install` in a venv, that folder in PYTHONPATH."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from sar_agent.jobs.record import JobRecord
from sar_agent.jobs.source import JobSource
from sar_agent.slurm.squeue import SqueueSource
from sar_agent.slurm.squeue_json import parse_squeue_json
from sar_lab.live.process import wait_until
from sar_lab.live.slurm import SlurmCluster

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    with SlurmCluster("n[001-016]", shared=True) as cluster:
        yield cluster


@pytest.fixture
def slurm(slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> SlurmCluster:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    return slurm


def records(source: JobSource) -> dict[str, JobRecord]:
    return {job.id: job for job in source.poll().records}


def as_json(slurm: SlurmCluster) -> dict[str, JobRecord]:
    return {job.id: job for job in parse_squeue_json(slurm.run("squeue", "--json"))}


def test_equal_records_of_every_kind_of_job(slurm: SlurmCluster) -> None:
    wide = slurm.salloc("n[001-002,005,009-010]", "--comment=a|b sar:ring")
    het = slurm.salloc("n003", ":", "-N1", "-w", "n007")
    array = slurm.run("sbatch", "--parsable", "--array=0-4%2", "-N1", "--wrap", "sleep 600").strip()
    held = slurm.run("sbatch", "--parsable", "--hold", "-N2", "--wrap", "true").strip()
    stopped = slurm.salloc(2)
    slurm.run("scontrol", "suspend", stopped)
    squeue = SqueueSource(deadline=30)
    wanted = {wide, het, stopped, f"{array}_0", f"{array}_1"}
    assert wait_until(lambda: set(records(squeue)) == wanted, 30)
    assert wait_until(lambda: records(squeue) == as_json(slurm), 10)
    seen = as_json(slurm)
    assert set(seen) == wanted and held not in seen
    assert seen[wide].traffic == "ring" and seen[stopped].state == "SUSPENDED"
    assert seen[het].numbers == (het, str(int(het) + 1))
    numbers = {task: seen[task].numbers[0] for task in (f"{array}_0", f"{array}_1")}
    assert len(set(numbers.values())) == 2, "a task's own number, by which hooks know it"
    assert {job.uid for job in seen.values()} == {os.getuid()}

    slurm.run("scontrol", "update", f"jobid={wide}", "admincomment=sar:bitcomp")
    assert as_json(slurm)[wide].traffic == "bitcomp", "only JSON shows it"
    slurm.run("scontrol", "resume", stopped)
    slurm.scancel(wide)
    assert wait_until(lambda: records(squeue) == as_json(slurm), 10)
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
def test_a_real_pyslurm_gives_the_records_of_squeue(slurm: SlurmCluster) -> None:
    wide = slurm.salloc("n[001-002,005,009-010]", "--comment=a|b sar:ring")
    het = slurm.salloc("n003", ":", "-N1", "-w", "n007")
    array = slurm.run("sbatch", "--parsable", "--array=0-4%2", "-N1", "--wrap", "sleep 600").strip()
    slurm.run("sbatch", "--hold", "-N2", "--wrap", "true")
    stopped = slurm.salloc(2)
    slurm.run("scontrol", "suspend", stopped)
    squeue = SqueueSource(deadline=30)
    wanted = {wide, het, stopped, f"{array}_0", f"{array}_1"}
    assert wait_until(lambda: set(records(squeue)) == wanted, 30)
    assert wait_until(lambda: records(squeue) == records_of_pyslurm(slurm), 10)
    assert records_of_pyslurm(slurm)[wide].traffic == "ring"
    slurm.scancel(wide)
    assert wait_until(lambda: records(squeue) == records_of_pyslurm(slurm), 10)
