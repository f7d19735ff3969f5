"""How long one poll of 5,000 jobs takes to parse: python -m tests.bench.bench_squeue."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable

from sar_agent.fabric.hostlist import expand
from sar_agent.jobs.squeue_text import parse_squeue_pipe
from tests.data import data_path


def running(nodes: Callable[[int], str]) -> str:
    """5,000 running jobs with as many node lists and start times."""
    return "".join(
        f"{job}|RUNNING|{nodes(job)}|batch|root|(null)|8|{1795221989 + job}|sar:ring\n"
        for job in range(1, 5001)
    )


def main() -> None:
    """Print milliseconds for the first poll (nothing cached) and the median of the next nine."""
    queues = {
        "real queue, 346 of 5,000 run": data_path("slurm/squeue_5000_pipe.txt").read_text(),
        "5,000 run, one bracket": running(lambda n: f"n[{n:04d}-{n + 7:04d}]"),
        "5,000 run, two prefixes": running(
            lambda n: f"r1n[{n:04d}-{n + 3:04d}],r2n[{n:04d}-{n + 3}]"
        ),
        "5,000 run, two brackets": running(lambda n: f"r[1-2]n[{n:04d}-{n + 3:04d}]"),
    }
    print(f"parse_squeue_pipe on {platform.machine()}, Python {platform.python_version()}, ms")
    for name, text in queues.items():
        expand.cache_clear()
        times = []
        for _ in range(10):
            start = time.perf_counter()
            parse_squeue_pipe(text)
            times.append(1e3 * (time.perf_counter() - start))
        print(f"{name:32} first {times[0]:7.1f}   then {sorted(times[1:])[4]:7.1f}")


if __name__ == "__main__":
    main()
