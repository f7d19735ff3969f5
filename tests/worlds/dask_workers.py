"""A scheduler of Dask and its workers, as a user starts them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sar_lab.live.process import Daemon, free_port, wait_until


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
