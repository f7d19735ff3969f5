"""The message server under a thousand messages a second, and the cost of an idle agent.

Separate processes sign and send the messages, and a real munged decodes them, all on the same
machine."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from sar_lab.live.munge_daemon import MungeDaemon
from sar_lab.live.slurm import SlurmCluster
from tests.bench.table import Table, goal
from tests.live.helpers.listening import Agent, start
from tests.live.helpers.munged import Encoder, dial, message

RATE = 1000
SENDERS = 2
TICKS = os.sysconf("SC_CLK_TCK")


def tables(full: bool) -> Iterator[Table]:
    """Both tables; with `full` each measurement takes longer."""
    seconds = 60 if full else 10
    yield _flood(seconds)
    yield _idle(120 if full else 20)


def _flood(seconds: int) -> Table:
    with tempfile.TemporaryDirectory(prefix="sar-bench-") as name, MungeDaemon() as munged:
        agent = start(Path(name), munged.socket, more={"debounce_seconds": 0.5})
        try:
            _send(agent, munged.socket, 2)  # to warm up
            before, cpu, memory = agent.metrics(), _cpu(agent), [_rss(agent)]
            waiting: list[float] = []
            with ThreadPoolExecutor(1) as pool:
                sent = pool.submit(_send, agent, munged.socket, seconds)
                while not sent.done():
                    time.sleep(0.5)
                    memory.append(_rss(agent))
                    waiting.append(agent.metrics()["sar_agent_events_waiting",])
                answers = sent.result()
            spent = _cpu(agent) - cpu
            after = agent.metrics()
        finally:
            agent.process.terminate()
            agent.process.wait(30)
    total = [m.get(("sar_agent_events_total", "start", "tcp"), 0) for m in (before, after)]
    refused = sum(v for k, v in after.items() if k[0] == "sar_agent_events_refused_total")
    times = [1e3 * taken for taken, good in answers if good]
    count, accepted = len(answers), int(total[1] - total[0])
    looks = int(
        after["sar_agent_stage_seconds_count", "slurm"]
        - before["sar_agent_stage_seconds_count", "slurm"]
    )
    rate = count / seconds
    table = Table(
        f"{rate:,.0f} events a second for {seconds} s",
        ("", "measured"),
        f"{SENDERS} processes sign and send messages over TCP, each with its own connection, and "
        f"wait for the answers; the messages cycle through 5,000 jobs. The agent polls the queue "
        "(a script in place of squeue) whenever its limits allow, with the default debounce.",
    )
    table.add("messages sent", f"{count:,}")
    table.add("accepted by the agent", f"{accepted:,}")
    table.add("answered with ok", f"{len(times):,}")
    table.add("refused", f"{refused:,.0f}")
    table.add("answer, median, ms", f"{median(times):.1f}")
    table.add("answer, 99 of 100, ms", f"{quantiles(times, n=100)[98]:.1f}")
    table.add("answer, slowest, ms", f"{max(times):.1f}")
    table.add("agent's CPU, of a core", f"{spent / seconds:.0%}")
    table.add("polls of the queue", f"{looks}")
    table.add("most jobs that wait for a poll", f"{max(waiting):,.0f}")
    points = [memory[(len(memory) - 1) * quarter // 4] / 1e6 for quarter in range(5)]
    table.add("resident memory each quarter, MB", ", ".join(f"{point:.1f}" for point in points))
    table.goals.append(goal("lost", count - accepted, 0, ""))
    table.goals.append(goal("rate", rate, 0.99 * RATE, "a second", at_least=True))
    table.goals.append(goal("growth in the last quarter", points[4] - points[3], 1, "MB"))
    return table


def _send(agent: Agent, munge: Path, seconds: float) -> list[tuple[float, bool]]:
    """(seconds to the answer, ok) of each message."""
    with multiprocessing.get_context("fork").Manager() as manager:
        found = manager.list()
        senders = [
            multiprocessing.get_context("fork").Process(
                target=_sender, args=(agent.tcp, munge, seconds, n, found)
            )
            for n in range(SENDERS)
        ]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        return [answer for part in found for answer in part]


def _sender(address: tuple[str, int], munge: Path, seconds: float, number: int, found: Any) -> None:
    encode, answers = Encoder(munge), []
    begin = time.perf_counter()
    step = SENDERS / RATE
    for n in range(int(seconds / step)):
        pause = begin + n * step - time.perf_counter()
        if pause > 0:
            time.sleep(pause)
        line = encode(message(job=str(1 + (n * SENDERS + number) % 5000), traffic="ring")) + b"\n"
        sent = time.perf_counter()
        try:
            with dial(address) as stream:
                stream.sendall(line)
                good = stream.recv(4096).startswith(b"ok\n")
        except OSError:
            good = False
        answers.append((time.perf_counter() - sent, bool(good)))
    found.append(answers)


def _idle(seconds: int) -> Table:
    table = Table(
        "An idle agent",
        ("500 jobs, a poll every 5 s", "of a core"),
        f"Measured over {seconds} s from /proc: the agent observes a fabric of 1,728 hosts, the "
        "real squeue queries a real slurmctld with 500 running jobs.",
    )
    with (
        tempfile.TemporaryDirectory(prefix="sar-bench-") as name,
        SlurmCluster("n[001-128]", leaf_size=12, shared=True) as slurm,
    ):
        for n in range(500):
            slurm.salloc(1, "-n1", "-w", f"n{n % 125 + 1:03d}")
        folder = Path(name)
        agent = start(
            folder,
            slurm.munge_socket,
            squeue="squeue",
            fabric="xgft:3;12,12,12;1,12,12",
            more={"interval_seconds": 5},
            env={"SLURM_CONF": str(slurm.conf)},
        )
        try:
            time.sleep(12)
            before = _cpu_of(agent)
            looks = agent.looks()
            time.sleep(seconds)
            after = _cpu_of(agent)
            looks = agent.looks() - looks
        finally:
            agent.process.terminate()
            agent.process.wait(30)
    own, children = ((b - a) / seconds for a, b in zip(before, after, strict=True))
    table.add("the agent itself", f"{own:.2%}")
    table.add("its squeue processes", f"{children:.2%}")
    table.add("polls", f"{looks:.0f}")
    table.goals.append(goal("the agent itself", 100 * own, 0.5, "% of a core"))
    return table


def _cpu(agent: Agent) -> float:
    return sum(_cpu_of(agent))


def _cpu_of(agent: Agent) -> tuple[float, float]:
    """CPU seconds of the agent, and of its ended children."""
    stat = Path(f"/proc/{agent.process.pid}/stat").read_text().rpartition(")")[2].split()
    times = [int(ticks) / TICKS for ticks in stat[11:15]]
    return times[0] + times[1], times[2] + times[3]


def _rss(agent: Agent) -> int:
    status = Path(f"/proc/{agent.process.pid}/statm").read_text().split()
    return int(status[1]) * os.sysconf("SC_PAGE_SIZE")
