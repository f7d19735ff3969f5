"""The latency from the start of a job to the agent, and from there to new routes in force."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sar_agent.agent.history import History
from sar_agent.fabric.spec import load_fabric
from sar_agent.opensm.plugin_client import PluginClient
from sar_lab.live.generated import ibsim_for
from sar_lab.live.munge_daemon import MungeDaemon
from sar_lab.live.process import wait_until
from sar_lab.live.slurm import SlurmCluster
from tests.bench.opensm_on_ibsim import opensm
from tests.bench.table import Table, goal
from tests.bench.timing import Times
from tests.fake_squeue import fake_squeue
from tests.live.helpers.built import built
from tests.live.helpers.listening import start
from tests.live.helpers.munged import Encoder, message, tell

SPEC = "xgft:3;12,12,12;1,12,12"
ROUNDS = 10
NOW = {"debounce_seconds": 0, "min_install_interval_seconds": 0, "reoptimise_seconds": 0}


def tables(full: bool) -> Iterator[Table]:
    """A table for each of the two latencies."""
    yield _hook()
    yield _install()


def _hook() -> Table:
    """The latency of sar-notify as PrologSlurmctld of a real slurmctld."""
    table = Table(
        "From a job's start to the agent",
        ("", "ms"),
        f"A real slurmctld with 16 nodes calls sar-notify as its PrologSlurmctld, {ROUNDS} jobs. "
        "*From the hook* is from the message's own time stamp until the agent has accepted it; "
        "*from srun* is from the call of `srun` (its own start and scheduling included).",
    )
    program = built("slurm_spank", "sar-notify")
    with tempfile.TemporaryDirectory(prefix="sar-bench-") as name:
        folder = Path(name)
        hook = folder / "prolog"
        socket = folder / "run" / "events.sock"
        hook.write_text(f"#!/bin/sh\nexec {program} start agent={socket}\n")
        hook.chmod(0o755)
        with SlurmCluster(extra=f"PrologSlurmctld={hook}\n") as slurm:
            hook.write_text(
                f"#!/bin/sh\nexec {program} start agent={socket} "
                f"munge_socket={slurm.munge_socket}\n"
            )
            agent = start(folder, slurm.munge_socket, more=NOW)
            calls = Times()
            try:
                for _ in range(ROUNDS):
                    received = agent.heard()
                    called = time.perf_counter()
                    srun = subprocess.Popen(
                        ["srun", "-N2", "true"], env=slurm.env(), cwd=slurm.folder
                    )
                    assert wait_until(lambda received=received: agent.heard() > received, 20, 0.002)
                    calls.append(time.perf_counter() - called)
                    assert srun.wait(60) == 0
                    slurm.wait_idle()
                metrics = agent.metrics()
            finally:
                agent.process.terminate()
                agent.process.wait(30)
    mean = (
        metrics["sar_agent_event_delay_seconds_sum",]
        / metrics["sar_agent_event_delay_seconds_count",]
    )
    below = metrics["sar_agent_event_delay_seconds_bucket", "0.1"]
    table.add("from the hook, mean", f"{1e3 * mean:.1f}")
    table.add("from srun", calls.show(".0f", 1e3))
    table.goals.append(goal("mean from the hook", 1e3 * mean, 100, "ms"))
    every = metrics["sar_agent_event_delay_seconds_count",]
    table.goals.append(goal("within 100 ms", below / every, 1, "of all", at_least=True))
    return table


def _install() -> Table:
    """The latency from a message to new routes in force."""
    fabric = load_fabric(SPEC)
    hosts = sorted(fabric.hosts)
    waits, own = Times(), Times()
    with (
        tempfile.TemporaryDirectory(prefix="sar-bench-") as name,
        ibsim_for(fabric) as ibsim,
        opensm(ibsim, fabric, "sar,minhop", 600) as manager,
        MungeDaemon() as munged,
    ):
        folder, bridge = Path(name), PluginClient(manager.socket_path)
        encode = Encoder(munged.socket)
        jobs = [_job(n, hosts[n::40][:40]) for n in range(40)]
        agent = start(
            folder,
            munged.socket,
            fabric=SPEC,
            more=NOW | {"mode": "install", "run_dir": str(manager.run_dir)},
            bridge=manager.socket_path,
            squeue=fake_squeue(folder, jobs),
            planned="is in force",
        )
        try:
            for n in range(ROUNDS):
                before = bridge.status().generation_in_force
                jobs[n] = _job(1000 + n, hosts[n + 1 :: 41][: 30 + n])
                fake_squeue(folder, jobs)
                called = time.perf_counter()
                assert tell(agent.unix, encode(message(job=str(1000 + n))))["ok"]
                while bridge.status().generation_in_force == before:
                    time.sleep(0.005)
                waits.append(time.perf_counter() - called)
                assert wait_until(lambda n=n: len(History(folder / "state").last(99)) == n + 2, 20)
                own.append(History(folder / "state").last(1)[0].seconds)
        finally:
            agent.process.terminate()
            agent.process.wait(30)
    table = Table(
        f"From a message to new routes in force, {fabric.terminals:,} hosts",
        ("debounce off", "s"),
        f"`{SPEC}` under ibsim with a stock OpenSM, 40 jobs, of which one is replaced, "
        f"{ROUNDS} times: from the message to the agent until the plugin reports the next "
        "generation in force. A Python script takes the place of squeue.",
    )
    table.add("message to routes in force", waits.show())
    table.add("the reroute, with reading back", own.show())
    table.goals.append(goal("slowest", max(waits), 2, "s"))
    return table


def _job(number: int, hosts: list[str]) -> dict[str, str]:
    return {
        "%i": str(number),
        "%A": str(number),
        "%N": ",".join(hosts),
        "%S": str(int(time.time())),
    }
