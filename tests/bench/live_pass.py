"""Where the time of a pass goes beside a stock OpenSM with the plugin, stage by stage.

The agent runs in this process, so that each stage has its wall time and its CPU time; what OpenSM
and ibsim take meanwhile is read from /proc. Slurm is a stand-in: its poll is the bench `squeue`.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sar_agent.agent import loop
from sar_agent.agent.build import build_agent
from sar_agent.agent.loop import Agent
from sar_agent.agent.outcome import Result
from sar_agent.config.model import Config
from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.fabric import Fabric
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.ibsim_net import net_ids
from sar_agent.formats.routes_file import read_routes_file
from sar_agent.jobs.record import JobRecord
from sar_agent.opensm.plugin_client import PluginClient, PluginStatus
from sar_agent.opensm.plugin_manager import PluginManager
from sar_agent.util.stages import record_stages, stage
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.opensm import OpenSM
from tests.bench.bench_fabrics import LARGEST, MIDDLE, fabric_of, size_of
from tests.bench.opensm_on_ibsim import cpu_of, opensm_with_plan
from tests.bench.table import Table, goal
from tests.worlds.fake_opensm import FakeSource

OTHER = "other"
START = 900.0
PATIENCE = 300.0
"""Seconds that OpenSM may take to start, and for a sweep."""
INTERVAL = 0.002


@dataclass
class StageTimes:
    """Wall and CPU seconds of each stage, without those of the stages inside it. A stage's CPU
    time is that of the agent's thread; `cpu` is that of all its threads."""

    wall: dict[str, float] = field(default_factory=dict)
    own: dict[str, float] = field(default_factory=dict)
    cpu: float = 0.0
    opensm: float = 0.0
    ibsim: float = 0.0
    _inner: list[list[float]] = field(default_factory=lambda: [[0.0, 0.0]])

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        began = time.perf_counter(), time.thread_time()
        self._inner.append([0.0, 0.0])
        try:
            yield
        finally:
            took = time.perf_counter() - began[0], time.thread_time() - began[1]
            inner = self._inner.pop()
            for kind, total, inside in zip((self.wall, self.own), took, inner, strict=True):
                kind[name] = kind.get(name, 0.0) + total - inside
            for index, total in enumerate(took):
                self._inner[-1][index] += total

    @property
    def total(self) -> tuple[float, float]:
        """Wall and CPU seconds of all stages."""
        wall, own = self._inner[0]
        return wall, own

    @property
    def work(self) -> float:
        """CPU seconds of all that a site would have: not the simulator's."""
        return self.cpu + self.opensm


class StagedClient(PluginClient):
    """Each kind of request to the plugin is a stage."""

    def _ask(self, request: str, timeout: float) -> bytes:
        with stage(f"OpenSM: {request.split()[0]}"):
            return super()._ask(request, timeout)


def tables(full: bool) -> Iterator[Table]:
    """A table for each size."""
    for name in (MIDDLE, LARGEST) if full else (MIDDLE,):
        with tempfile.TemporaryDirectory(prefix="sar-bench-") as folder:
            yield _table(fabric_of(name), name, Path(folder))


@dataclass
class Sweep:
    """Seconds from the begin of OpenSM's routing."""

    served: float = 0.0  # all switches have confirmed tables that drop no packet of a host
    used: float = 0.0  # they have confirmed tables in which the cable that came back has entries
    confirmed: float = 0.0  # nothing more is to come
    entries: int = 0  # of the cable, in the end


@dataclass
class Live:
    """An OpenSM, and an agent beside it."""

    manager: OpenSM
    ibsim: Ibsim
    agent: Agent
    source: FakeSource

    @property
    def status(self) -> PluginStatus:
        """The plugin's."""
        return PluginClient(self.manager.socket_path).status()

    def run(self, result: Result | None = None) -> StageTimes:
        """A pass; raises where it ends otherwise than by `result`."""
        times, pids = StageTimes(), (self.manager.pid, self.ibsim.pid)
        recorder, loop.record_stages = loop.record_stages, lambda _: record_stages(times)
        cpu, other = time.process_time(), [cpu_of(pid) for pid in pids]
        try:
            with times(OTHER):
                report = self.agent.pass_once()
        finally:
            loop.record_stages = recorder
        times.cpu = time.process_time() - cpu
        times.opensm, times.ibsim = (
            cpu_of(pid) - before for pid, before in zip(pids, other, strict=True)
        )
        if result not in (None, report.result):
            raise RuntimeError(f"not {result}: {report.sentence}")
        return times

    def change(self, act: Callable[[], None], carried: Callable[[], int]) -> Sweep:
        """Let the fabric change, and wait until OpenSM and the plugin are done with it. `carried`
        counts the entries of the cable that changes, by a dump."""
        before = last = self.status
        act()
        self.manager.sweep()
        sweep, began = Sweep(), 0.0
        end, quiet = time.monotonic() + PATIENCE, time.monotonic()
        while time.monotonic() - quiet < 3 or not sweep.confirmed:
            status, now = self.status, time.monotonic()
            if now > end:
                raise RuntimeError(f"OpenSM is not done after {PATIENCE:g} s: {status}")
            noticed = status.topology_changes > before.topology_changes
            if not began and (noticed or status.state == "building"):
                began = now
            if status.routings != last.routings or not (noticed and status.settled):
                quiet = now
            if noticed and status.settled and status.routings > before.routings:
                if not (sweep.served or status.repair_drops):
                    sweep.served = now - began
                if not sweep.confirmed or status.routings != last.routings:
                    sweep.confirmed = now - began
                    sweep.entries = carried()
                    sweep.used = sweep.used or (now - began if sweep.entries else 0.0)
            last = status
            time.sleep(INTERVAL)
        return sweep


@contextmanager
def live_agent(fabric: Fabric, folder: Path, jobs: tuple[JobRecord, ...]) -> Iterator[Live]:
    """OpenSM that began with a routes file, as at a site, and an agent that has done no pass."""
    with opensm_with_plan(fabric, START) as (ibsim, manager):
        source = FakeSource(jobs)
        client = StagedClient(manager.socket_path)
        manager_of_agent = PluginManager(client, manager.routes_path, HostMapper())
        agent = quiet_agent(folder / "state", manager.socket_path, manager_of_agent, source)
        yield Live(manager, ibsim, agent, source)


def records_of(fabric: Fabric) -> tuple[JobRecord, ...]:
    """The jobs of `mix:1`."""
    return tuple(
        JobRecord(job.id, tuple(fabric.terminal_host[t] for t in job.terminals), "RUNNING")
        for job in synthetic_mix(fabric, 1).jobs
    )


def _table(fabric: Fabric, name: str, folder: Path) -> Table:
    jobs, found, sweeps = records_of(fabric), {}, {}
    leaf = int(fabric.terminal_switch[-1])  # OpenSM is on another one
    channel = int(np.flatnonzero(fabric.channel_source == leaf)[0])
    cable = net_ids(fabric)[0][leaf], int(fabric.channel_port[channel])
    load = os.getloadavg()[0]
    with live_agent(fabric, folder, jobs) as live:
        carried = partial(_carried, live, fabric, leaf, cable[1])
        found["first"] = live.run(Result.INSTALLED)
        for _ in range(2):
            live.source.records = jobs[1:]
            found["a job ends"] = live.run(Result.INSTALLED)
            live.source.records = jobs
            found["a job starts"] = live.run(Result.INSTALLED)
            found["nothing"] = live.run(Result.NOTHING)
            sweeps["a cable dies"] = live.change(lambda: live.ibsim.unlink(*cable), carried)
            found["a cable dies"] = live.run()
            sweeps["it comes back"] = live.change(lambda: live.ibsim.relink(*cable), carried)
            found["it comes back"] = live.run()
    stages = sorted(
        {stage for times in found.values() for stage in times.wall} - {OTHER},
        key=lambda stage: -max(times.wall.get(stage, 0.0) for times in found.values()),
    )
    table = Table(
        f"A pass of the agent beside OpenSM, {size_of(fabric)}",
        ("wall / CPU ms", *found),
        f"`{name}`, `mix:1` ({len(jobs)} jobs), sar-plus, ibsim, a stock OpenSM with the plugin; "
        f"load average {load:.1f} at the start and {os.getloadavg()[0]:.1f} at the end. Of 2 runs "
        "the second. Stages: the agent's own thread; *OpenSM: …* is the wait for an answer of the "
        "plugin. The last rows are the CPU time of all threads of each process during the pass.",
    )
    for one in (*stages, OTHER):
        cells = ((times.wall.get(one, 0.0), times.own.get(one, 0.0)) for times in found.values())
        table.add(one, *(f"{1e3 * wall:.0f} / {1e3 * own:.0f}" for wall, own in cells))
    table.add(
        "in all", *(f"{1e3 * t.total[0]:.0f} / {1e3 * t.total[1]:.0f}" for t in found.values())
    )
    for what, pick in (
        ("the agent, all threads", lambda t: t.cpu),
        ("OpenSM", lambda t: t.opensm),
        ("ibsim", lambda t: t.ibsim),
        ("the agent and OpenSM", lambda t: t.work),
    ):
        table.add(what, *(f"{1e3 * pick(times):.0f}" for times in found.values()))
    for what, sweep in sweeps.items():
        used = f"the cable used after {sweep.used:.2f} s, " if sweep.used else ""
        table.goals.append(
            f"{what}: hosts served {sweep.served:.2f} s after OpenSM began to route, {used}all "
            f"confirmed after {sweep.confirmed:.2f} s; the cable carries {sweep.entries:,} entries "
            "of its leaf switch"
        )
    if name == LARGEST:
        change = max(found[what].total[0] for what in ("a job ends", "a job starts"))
        failure = max(found[what].total[0] for what in ("a cable dies", "it comes back"))
        table.goals.append(goal("a job change", change, 1, "s"))
        table.goals.append(goal("a failure", failure, 0.5, "s"))
        table.goals.append(goal("a cable back, used", sweeps["it comes back"].used, 2, "s"))
    return table


def _carried(live: Live, fabric: Fabric, leaf: int, port: int) -> int:
    """Entries of the leaf switch that lead into its cable at `port`, as the plugin dumps them."""
    file = read_routes_file(PluginClient(live.manager.socket_path).dump().path)
    row = int(np.flatnonzero(file.switch_guids == fabric.switch_guid[leaf])[0])
    return int(np.count_nonzero(file.forwarding[:, row] == port))


def quiet_agent(state_dir: Path, socket: Path, manager: PluginManager, source: FakeSource) -> Agent:
    """An agent that has done no pass, and improves nothing by itself; the socket is in OpenSM's
    folder."""
    keys: dict[str, Any] = {
        "agent": {
            "mode": "install",
            "state_dir": str(state_dir),
            "run_dir": str(socket.parent),
            "reoptimise_seconds": 3600,
        },
        "slurm": {"topology_conf": ""},
        "opensm": {"plugin_socket": str(socket)},
    }
    return build_agent(Config.model_validate(keys, strict=False), manager, source)
