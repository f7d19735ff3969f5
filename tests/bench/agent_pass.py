"""Where the time of a pass goes: the agent's own share, stage by stage.

OpenSM and Slurm are stand-ins in the same process, whose time is a row of its own. Seconds are
those of the agent's thread on its processor: what a pass takes on an idle machine, but for waiting
for the disk. `event_latency` and `failure_live` have a real OpenSM.
"""

from __future__ import annotations

import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sar_agent.agent import loop
from sar_agent.agent.build import build_agent
from sar_agent.agent.loop import Agent
from sar_agent.agent.outcome import Result
from sar_agent.config.model import Config
from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import routes_to_file
from sar_agent.jobs.record import JobRecord
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.opensm.plugin_client import DumpAnswer, LoadAnswer
from sar_agent.opensm.plugin_manager import PluginManager
from sar_agent.routing import Options, PreviousRoutes, load_engine
from sar_agent.routing.lid_offsets import base_of
from sar_agent.util.stages import record_stages
from tests.bench.bench_fabrics import LARGEST, MIDDLE, fabric_of, size_of
from tests.bench.table import Table, goal
from tests.fake_opensm import FakeBridge, FakeSource

OTHER, STAND_IN = "other", "the stand-ins"


class StageSeconds(dict[str, float]):
    """Seconds of each stage, without those of the stages inside it."""

    def __init__(self) -> None:
        self._inner = [0.0]

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        began = time.thread_time()
        self._inner.append(0.0)
        try:
            yield
        finally:
            took = time.thread_time() - began
            self[name] = self.get(name, 0.0) + took - self._inner.pop()
            self._inner[-1] += took

    @property
    def total(self) -> float:
        """Seconds of all stages."""
        return self._inner[0]


class TimedOpenSM(FakeBridge):
    """A stand-in whose own time is a stage."""

    seconds = StageSeconds()

    @property
    def digest(self) -> str:
        """Quicker than a secure hash: the plugin's takes some 30 ms."""
        assert self.tables
        return f"{zlib.crc32(self.tables.forwarding.tobytes()):08x}"

    def load(self, generation: int, proved_from: str | None = None) -> LoadAnswer:
        with self.seconds(STAND_IN):
            return super().load(generation, proved_from)

    def dump(self) -> DumpAnswer:
        with self.seconds(STAND_IN):
            return super().dump()


class DiscoveredManager(PluginManager):
    """Takes the fabric from the stand-in."""

    def fabric(self) -> Fabric:
        assert isinstance(self.client, TimedOpenSM)
        return self.client.fabric


def tables(full: bool) -> Iterator[Table]:
    """A table for each size."""
    for name in (MIDDLE, LARGEST) if full else (MIDDLE,):
        with tempfile.TemporaryDirectory(prefix="sar-bench-") as folder:
            yield _table(fabric_of(name), name, Path(folder))


def _table(fabric: Fabric, name: str, folder: Path) -> Table:
    jobs = tuple(
        JobRecord(job.id, tuple(fabric.terminal_host[t] for t in job.terminals), "RUNNING")
        for job in synthetic_mix(fabric, 1).jobs
    )
    opensm, source = TimedOpenSM(folder / "run", fabric), FakeSource(jobs)
    agent = _agent(folder, opensm, source)
    _seconds(agent, opensm)  # loads the kernels, as does the first of each kind of pass
    found: dict[str, StageSeconds] = {}
    for _ in range(2):
        source.records = jobs[1:]
        found["a job ends"] = _seconds(agent, opensm, Result.INSTALLED)
        source.records = jobs
        found["a job starts"] = _seconds(agent, opensm, Result.INSTALLED)
        found["nothing"] = _seconds(agent, opensm, Result.NOTHING)
        broken = _repair(agent, opensm, fabric)
        found["a cable dies"] = _seconds(agent, opensm, Result.NOTHING)
        opensm.fabric = fabric
        opensm.topology_changes += 1
        _put(opensm, fabric, agent)
        found["it comes back"] = _seconds(agent, opensm, Result.NOTHING)
        opensm.fabric = broken
        opensm.topology_changes += 1
        opensm.fall_back()
        found["another engine"] = _seconds(agent, opensm, Result.INSTALLED)
        opensm.fabric = fabric
        opensm.topology_changes += 1
        opensm.fall_back()
        _seconds(agent, opensm, Result.INSTALLED)
    stages = sorted(
        {stage for seconds in found.values() for stage in seconds} - {OTHER, STAND_IN},
        key=lambda stage: -max(seconds.get(stage, 0.0) for seconds in found.values()),
    )
    table = Table(
        f"A pass of the agent, {size_of(fabric)}",
        ("processor ms", *found),
        f"`{name}`, `mix:1` ({len(jobs)} jobs), sar-plus. Of 2 runs the second. *A cable dies*, "
        "*it comes back*: the plugin has repaired the tables, and the agent goes on from them. "
        "*Another engine*: it has not, and all tables are replaced.",
    )
    for stage in (*stages, OTHER, STAND_IN):
        table.add(stage, *(f"{1e3 * seconds.get(stage, 0.0):.0f}" for seconds in found.values()))
    own = {what: seconds.total - seconds.get(STAND_IN, 0.0) for what, seconds in found.items()}
    table.add("the agent in all", *(f"{1e3 * seconds:.0f}" for seconds in own.values()))
    if name == LARGEST:
        table.goals.append(
            goal("a job change", max(own["a job ends"], own["a job starts"]), 1, "s")
        )
        table.goals.append(goal("a failure", own["a cable dies"], 0.5, "s"))
    return table


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


def _agent(folder: Path, opensm: TimedOpenSM, source: FakeSource) -> Agent:
    manager = DiscoveredManager(opensm, opensm.folder / "routes.sar")  # type: ignore[arg-type]
    return quiet_agent(folder / "state", opensm.socket_path, manager, source)


def _seconds(agent: Agent, opensm: TimedOpenSM, result: Result | None = None) -> StageSeconds:
    """Of a pass; raises where it ends otherwise than by `result`."""
    opensm.seconds = seconds = StageSeconds()
    recorder, loop.record_stages = loop.record_stages, lambda _: record_stages(seconds)
    try:
        with seconds(OTHER):
            report = agent.pass_once()
    finally:
        loop.record_stages = recorder
    if result not in (None, report.result):
        raise RuntimeError(f"not {result}: {report.sentence}")
    return seconds


def _repair(agent: Agent, opensm: TimedOpenSM, fabric: Fabric) -> Fabric:
    """A leaf's cable dies, and the tables in force are repaired for it."""
    leaf = int(fabric.terminal_switch[-1])
    first = int(np.flatnonzero(fabric.channel_source == leaf)[0])
    broken = fabric.with_links_down([first])
    opensm.fabric = broken
    opensm.topology_changes += 1
    _put(opensm, broken, agent)
    return broken


def _put(opensm: TimedOpenSM, fabric: Fabric, agent: Agent) -> None:
    """Tables of the plan in force that serve `fabric`, as after a repair by the plugin."""
    plan = agent.planner.last
    assert plan and opensm.tables
    before = PreviousRoutes(plan.fabric, plan.mix, base_of(plan.routes))
    routes = load_engine("sar-plus").reroute(before, fabric, plan.mix, Options())  # type: ignore[attr-defined]
    file = routes_to_file(
        fabric,
        replace(routes, senders=plan.routes.senders),
        plan.generation,
        senders=plan.routes.senders,
        numbers=plan.numbers,
        loads=plan.routes_file.loads,
    )
    opensm.tables = file
    opensm.amendments += 1
    opensm._routed()
