"""The latency from an application's request for a routing key to its routes in force."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from sar_agent.fabric.spec import load_fabric
from sar_agent.keys import client as key
from sar_agent.opensm.plugin_client import PluginClient
from sar_lab.live.generated import ibsim_for
from sar_lab.live.munge_daemon import MungeDaemon
from tests.bench.event_latency import NOW, SPEC, _job
from tests.bench.opensm_on_ibsim import opensm
from tests.bench.table import Table, goal
from tests.bench.timing import Times
from tests.fake_squeue import fake_squeue
from tests.live.helpers.listening import start

LMC = 3
ROUNDS = 6
"""The number of keys for which there are LID offsets."""


def tables(full: bool) -> Iterator[Table]:
    """The table of key latencies."""
    fabric = load_fabric(SPEC)
    hosts = sorted(fabric.hosts)
    jobs = [_job(1, hosts[:864]), *(_job(n, hosts[864 + n :: 40]) for n in range(2, 40))]
    times: dict[str, Times] = {"864 hosts, a shift": Times(), "21 hosts, a ring": Times()}
    blocks: dict[str, list[int]] = {name: [] for name in times}
    with (
        tempfile.TemporaryDirectory(prefix="sar-bench-") as name,
        ibsim_for(fabric) as ibsim,
        opensm(ibsim, fabric, "sar,minhop", 600, lmc=str(LMC)) as manager,
        MungeDaemon() as munged,
        mock.patch.dict(os.environ, {"SAR_MUNGE_SOCKET": str(munged.socket)}),
    ):
        folder, bridge = Path(name), PluginClient(manager.socket_path)
        agent = start(
            folder,
            munged.socket,
            fabric=SPEC,
            lmc=LMC,
            more=NOW | {"mode": "install", "run_dir": str(manager.run_dir)},
            bridge=manager.socket_path,
            squeue=fake_squeue(folder, jobs),
            planned="is in force",
        )
        try:
            for n in range(ROUNDS):
                for what, job, pattern in zip(
                    times, (1, 2 + n), (f"shift:{7 * n + 1}", "ring"), strict=True
                ):
                    before = bridge.status().lft_blocks_confirmed
                    spent = sum(map(_cpu, (agent.process.pid, manager.pid)))
                    with times[what].one():
                        found = key.request(
                            f"phase{n}", pattern=pattern, job=job, wait=60, agent=str(agent.unix)
                        )
                    assert found.in_force, found.sentence
                    times[what].cpu[-1] += sum(map(_cpu, (agent.process.pid, manager.pid))) - spent
                    blocks[what].append(bridge.status().lft_blocks_confirmed - before)
            stages = {
                stage[1]: value
                for stage, value in agent.metrics().items()
                if stage[0] == "sar_agent_stage_last_seconds"
            }
        finally:
            agent.process.terminate()
            agent.process.wait(30)
    table = Table(
        f"From a request for a routing key to its routes in force, {fabric.terminals:,} hosts",
        ("LMC 3, 39 jobs", "s", "of a processor, s", "LFT blocks sent"),
        f"`{SPEC}` under ibsim with a stock OpenSM: `sar_agent.keys.client.request` with munge, "
        f"{ROUNDS} keys of each kind, answered after the tables were read back; *of a processor* "
        "is the CPU time of the agent, OpenSM and the client. The stages of the last key: "
        + ", ".join(f"{k} {v:.3f}" for k, v in sorted(stages.items()))
        + " s.",
    )
    for what, taken in times.items():
        sent = sorted(blocks[what])
        table.add(what, taken.show(), Times(taken.cpu).show(), f"{sent[0]:,} … {sent[-1]:,}")
        table.goals.append(goal(f"slowest, {what}", max(taken), 1, "s"))
    yield table


def _cpu(pid: int) -> float:
    """Seconds of a processor that a process has taken so far."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
