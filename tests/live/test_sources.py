"""squeue, slurmrestd, `squeue --json` and pyslurm on one live cluster: equal records.

pyslurm must be built for the Slurm that is installed, and no registry has it for Debian's. Its test
runs where `import pyslurm` would find one: `git clone` of github.com/PySlurm/pyslurm at the tag of
the release (v22.5.3, v24.11.0), `pip install` in a venv, that folder in PYTHONPATH."""

from __future__ import annotations

import os
import pickle
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from sar_agent.errors import Unavailable
from sar_agent.jobs.record import JobRecord
from sar_agent.jobs.source import JobSource
from sar_agent.slurm.slurmrestd import SlurmrestdSource
from sar_agent.slurm.squeue import SqueueSource
from sar_lab.live.process import Daemon, wait_until
from sar_lab.live.slurm import SlurmCluster

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(shutil.which("slurmrestd") is None, reason="slurmrestd is not installed"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    key = tmp_path_factory.mktemp("jwt") / "key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(32))
    extra = f"AuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key={key}\n"
    with SlurmCluster("n[001-016]", shared=True, extra=extra) as cluster:
        yield cluster


@pytest.fixture
def slurm(slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> SlurmCluster:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    return slurm


def plugin_of_jobs(env: dict[str, str]) -> str:
    """The plugin that serves /jobs, without those that want a slurmdbd: one for each of its
    versions, in later releases one for all."""
    listed = subprocess.run(["slurmrestd", "-s", "list"], env=env, capture_output=True, text=True)
    words = listed.stdout + listed.stderr  # 24.11, 22.05
    found = re.findall(r"openapi/(?:v[0-9.]+|slurmctld)$", words, re.MULTILINE)
    assert found, listed
    return max(found)


@contextmanager
def slurmrestd(slurm: SlurmCluster, folder: Path, auth: str) -> Iterator[Path]:
    """slurmrestd refuses to run as root or SlurmUser unless a variable allows it."""
    socket = folder / "rest.sock"
    env = slurm.env() | {"SLURMRESTD_SECURITY": "disable_user_check"}
    if auth == "rest_auth/jwt":
        env["SLURM_JWT"] = "daemon"
    command = ["slurmrestd", "-a", auth, "-s", plugin_of_jobs(env), f"unix:{socket}"]
    with Daemon(command, folder / "slurmrestd.log", env) as daemon:
        up = wait_until(lambda: socket.exists() or not daemon.alive(), 20)
        assert up and daemon.alive(), daemon.tail()
        yield socket


def records(source: JobSource) -> dict[str, JobRecord]:
    return {job.id: job for job in source.poll().records}


def test_equal_records_of_every_kind_of_job(slurm: SlurmCluster, tmp_path: Path) -> None:
    wide = slurm.salloc("n[001-002,005,009-010]", "--comment=a|b sar:ring")
    het = slurm.salloc("n003", ":", "-N1", "-w", "n007")
    array = slurm.run("sbatch", "--parsable", "--array=0-4%2", "-N1", "--wrap", "sleep 600").strip()
    held = slurm.run("sbatch", "--parsable", "--hold", "-N2", "--wrap", "true").strip()
    stopped = slurm.salloc(2)
    slurm.run("scontrol", "suspend", stopped)
    squeue = SqueueSource(deadline=30)
    wanted = {wide, het, stopped, f"{array}_0", f"{array}_1"}
    assert wait_until(lambda: set(records(squeue)) == wanted, 30)
    with slurmrestd(slurm, tmp_path, "rest_auth/local") as socket:
        rest = SlurmrestdSource(socket)
        assert wait_until(lambda: records(squeue) == records(rest), 10)
        seen = records(rest)
        assert set(seen) == wanted and held not in seen
        assert seen[wide].traffic == "ring" and seen[stopped].state == "SUSPENDED"
        assert seen[het].numbers == (het, str(int(het) + 1))
        numbers = {task: seen[task].numbers[0] for task in (f"{array}_0", f"{array}_1")}
        assert len(set(numbers.values())) == 2, "a task's own number, by which hooks know it"
        assert {job.uid for job in seen.values()} == {os.getuid()}

        slurm.run("scontrol", "update", f"jobid={wide}", "admincomment=sar:bitcomp")
        assert records(rest)[wide].traffic == "bitcomp", "only JSON shows it"
        slurm.run("scontrol", "resume", stopped)
        slurm.scancel(wide)
        assert wait_until(lambda: records(squeue) == records(rest), 10)
        assert wide not in records(rest)


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


def test_a_token_lets_in_and_no_token_does_not(slurm: SlurmCluster, tmp_path: Path) -> None:
    job = slurm.salloc(2)
    token = tmp_path / "token"
    with slurmrestd(slurm, tmp_path, "rest_auth/jwt") as socket:
        with pytest.raises(
            Unavailable, match=r"does not authenticate the agent .*slurmrestd_jwt_file"
        ):
            SlurmrestdSource(socket, deadline=3).poll()
        token.write_text(slurm.run("scontrol", "token", "lifespan=600"))
        assert set(records(SlurmrestdSource(socket, jwt_file=token))) == {job}
        token.write_text("SLURM_JWT=forged")
        with pytest.raises(Unavailable, match="slurmrestd at"):
            SlurmrestdSource(socket, jwt_file=token, deadline=3).poll()
