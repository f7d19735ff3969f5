"""The coordinator of updates in five phases and its subscribers, without daemons."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sar_agent.agent.build import build_agent
from sar_agent.agent.loop import Agent
from sar_agent.agent.outcome import Report
from sar_agent.config.model import Config
from sar_agent.fabric import Fabric
from sar_agent.fabric.ibsim_net import read_ibsim_net, write_ibsim_net
from sar_agent.fabric.lids import assign_lids
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.routes_file import RoutesFile
from sar_agent.services.five_phase.coordinator import Coordinator
from sar_agent.services.five_phase.messages import (
    Acknowledge,
    Phase,
    Subscribe,
)
from tests.worlds.fake_opensm import FakeBridge, FakeSource, job

JOBS = (
    job("1", "n003", "n004", "n006", "n012", "n014", "n015"),
    job("2", "n001", "n002", "n005", "n009", "n011", "n013"),
)
"""They need exceptions, so tables change when one ends."""


NAME = "00000000000000aa"


def with_lids(fabric: Fabric, lmc: int) -> Fabric:
    switches, terminals = assign_lids(fabric, lmc)
    return replace(fabric, lmc=lmc, switch_lid=switches, terminal_lid=terminals)


class Subscriber:
    """A fake of libsar_migrate without a network: notices reach it, it acknowledges at once."""

    def __init__(self, world: World, name: str = NAME, job: str = "1") -> None:
        self.world, self.name, self.offset, self.deaf = world, name, 0, False
        self.seen: list[tuple[str, int]] = []
        self.coordinator.hear(Subscribe(name, job, None, 0, 0))
        world.bridge.on_notice.append(self.notice)

    @property
    def coordinator(self) -> Coordinator:
        return self.world.agent.updates.coordinator

    def notice(self, kind: str, update: int) -> None:
        if self.deaf:
            return
        self.seen.append((kind, self.offset))
        self.offset = int(kind == "unpath")
        self.coordinator.hear(Acknowledge(self.name, Phase(kind), update))


class World:
    """An agent that installs in phases; it hears subscribers."""

    def __init__(self, folder: Path, lmc: int = 1, **update: Any) -> None:
        self.folder, self.net = folder, folder / "fabric.net"
        write_ibsim_net(with_lids(load_fabric("xgft:2;4,4;1,2"), lmc), self.net)
        self.bridge = FakeBridge(folder / "run", self.fabric, lmc=lmc)
        self.source = FakeSource(JOBS)
        self.update = {"mode": "five-phase", "deadline_seconds": 30, "lease_seconds": 60} | update
        self.agent = self.restart()

    @property
    def fabric(self) -> Fabric:
        return read_ibsim_net(self.net.read_text())

    @property
    def config(self) -> Config:
        return Config.model_validate(
            {
                "agent": {
                    "mode": "install",
                    "state_dir": str(self.folder / "state"),
                    "run_dir": str(self.folder / "run"),
                },
                "slurm": {"topology_conf": ""},
                "fabric": {"file": str(self.net)},
                "opensm": {"plugin_socket": str(self.bridge.socket_path)},
                "update": self.update,
            },
            strict=False,
        )

    def restart(self, known: bool = True) -> Agent:
        (self.folder / "state").mkdir(exist_ok=True)
        manager = self.bridge.manager
        self.agent = build_agent(self.config, manager, self.source, daemon=True)
        self.agent.pacing.patient = False
        if known:
            self.agent.updates.coordinator.all_known_at = 0.0
        return self.agent

    def once(self) -> Report:
        return self.agent.pass_once()

    def fewer_jobs(self) -> None:
        self.source.records = self.source.records[:1]

    def tables(self) -> RoutesFile:
        assert self.bridge.tables is not None
        return self.bridge.tables

    @property
    def phase(self) -> Phase:
        return self.agent.updates.coordinator.state.phase
