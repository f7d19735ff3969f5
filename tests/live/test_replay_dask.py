"""A replay on Dask: two workers of a scheduler, and jobs of a real Slurm, give the same bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sar_lab.live.process import Daemon, free_port, wait_until
from sar_lab.live.slurm import SlurmCluster


@contextmanager
def dask(folder: Path, workers: int) -> Iterator[str]:
    """The address of a scheduler on loopback with so many workers, a thread each."""
    folder.mkdir()
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    words = ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    started = [
        Daemon([sys.executable, "-m", "distributed.cli.dask_scheduler", *words], folder / "log")
    ]
    try:
        for number in range(workers):
            words = [address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
            words += ["--local-directory", str(folder / str(number))]
            log = folder / f"{number}.log"
            worker = [sys.executable, "-m", "distributed.cli.dask_worker", *words]
            started.append(Daemon(worker, log))
            assert wait_until(lambda log=log: "Registered to" in log.read_text(), 60)
        yield address
    finally:
        for daemon in reversed(started):
            daemon.stop(10)


pytestmark = [pytest.mark.live, pytest.mark.long]

START = [sys.executable, "-c", "from sar_lab.cli import main; main()"]
REPLAY = (
    "replay --fabric standin:taurus --history synthetic:taurus,days=1 --every 10m --chunk 4 "
    "--engine dfsssp --engine sar-plus --json"
)
WORDS = REPLAY.split()


def replay(out: Path, *more: str, env: dict[str, str] | None = None) -> dict[str, bytes]:
    done = subprocess.run(
        [*START, *WORDS, "--out", str(out), *more],
        capture_output=True,
        text=True,
        env=env,
        timeout=800,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["out"] == str(out)
    return {name: (out / name).read_bytes() for name in ("replay.parquet", "replay.json")}


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> dict[str, bytes]:
    return replay(tmp_path_factory.mktemp("replay") / "alone", "--workers", "1")


def test_two_workers_of_a_scheduler(tmp_path, alone):
    with dask(tmp_path / "dask", 2) as address:
        assert replay(tmp_path / "out", "--dask", address) == alone


def test_jobs_of_slurm(tmp_path, alone):
    """dask-jobqueue asks a real slurmctld for two jobs; they are gone when the replay is done."""
    config = tmp_path / "dask"
    config.mkdir()
    (config / "jobqueue.yaml").write_text(
        json.dumps(  # which is YAML, too
            {
                "jobqueue": {
                    "slurm": {
                        "cores": 1,
                        "memory": "900MB",
                        "processes": 1,
                        "interface": "lo",
                        "python": sys.executable,
                        "local-directory": str(tmp_path),
                        "log-directory": str(tmp_path),
                        "walltime": "00:10:00",
                        "queue": "batch",
                        "job-extra-directives": ["--ntasks=1"],
                    }
                }
            }
        )
    )
    with SlurmCluster("n[001-004]", leaf_size=2) as slurm:
        env = slurm.env() | {"DASK_CONFIG": str(config)}
        assert replay(tmp_path / "out", "--dask", "slurm:2", env=env) == alone
        assert wait_until(lambda: not slurm.squeue("-h"), 30)
    logs = [path.read_text() for path in tmp_path.glob("dask-worker-*.err")]
    assert len(logs) == 2 and any("Registered to" in log for log in logs)
