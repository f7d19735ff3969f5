"""The time to parse a poll of 5,000 jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from sar_agent.slurm import hostlist, squeue_text
from sar_agent.slurm.hostlist import expand
from sar_agent.slurm.squeue import parse_poll
from tests.bench.table import Table, goal
from tests.bench.timing import Times
from tests.data import data_path

MARK = "0123456789abcdef"


def printed(lines: str) -> str:
    """`lines` as squeue prints them for our poll: uid, raw number and name behind each."""
    return "".join(
        f"{MARK}|{line}|0|{job}|{MARK}~job {job}\n"
        for job, line in enumerate(lines.splitlines(), 1)
    )


def running(nodes: Callable[[int], str]) -> str:
    """5,000 running jobs, each with another node list and start time."""
    return "".join(
        f"{job}|RUNNING|{nodes(job)}|batch|root|(null)|8|{1795221989 + job}|sar:ring\n"
        for job in range(1, 5001)
    )


def tables(full: bool) -> Iterator[Table]:
    """The table of the first poll (with empty caches) and of later ones."""
    queues = {
        "one bracket": running(lambda n: f"n[{n:04d}-{n + 7:04d}]"),
        "fragmented": running(
            lambda n: f"n[{n:04d},{n + 3:04d}-{n + 5:04d},{n + 50:04d},{n + 77:04d}-{n + 79:04d}]"
        ),
        "two prefixes": running(lambda n: f"r1n[{n:04d}-{n + 3:04d}],r2n[{n:04d}-{n + 3:04d}]"),
        "two brackets": running(lambda n: f"r[1-2]n[{n:04d}-{n + 3:04d}]"),
    }
    try:
        real = data_path("slurm/squeue_5000_pipe.txt").read_text()
        queues["a real queue, 346 of them run"] = real
    except pytest.skip.Exception:
        pass  # the real queue is not on this machine
    table = Table(
        "A poll of 5,000 jobs, parsed",
        ("5,000 jobs, all running, 8 nodes each", "first poll, ms", "its CPU, ms", "later, ms"),
        "Median (least … most): ten first polls, each with empty caches, and ten after them. "
        "Every job has another node list and start time. CPU time is that of the process itself, "
        "independent of other load.",
    )
    worst = [0.0, 0.0, 0.0]
    for name, lines in queues.items():
        text = printed(lines)
        first, later = Times(), Times()
        for _ in range(10):
            for cached in (expand, hostlist._namer, squeue_text._seconds):
                cached.cache_clear()
            for times in (first, later):
                with times.one():
                    parse_poll(text, MARK)
        cpu = Times(first.cpu)
        table.add(name, first.show(".1f", 1e3), cpu.show(".1f", 1e3), later.show(".1f", 1e3))
        worst = [
            max(pair) for pair in zip(worst, (first.median, cpu.median, later.median), strict=True)
        ]
    for what, seconds in zip(
        ("first poll", "first poll, CPU alone", "later poll"), worst, strict=True
    ):
        table.goals.append(goal(f"slowest {what}", 1e3 * seconds, 60, "ms"))
    yield table
