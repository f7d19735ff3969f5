"""The whole agent above a fake OpenSM and a written queue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sar_agent.agent.build import build_agent
from sar_agent.agent.history import Row
from sar_agent.agent.loop import Agent
from sar_agent.agent.outcome import Report
from sar_agent.agent.state import State
from sar_agent.config.model import Config
from sar_agent.fabric import Fabric
from sar_agent.fabric.ibsim_net import read_ibsim_net, write_ibsim_net
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.conversion import file_to_routes
from tests.worlds.fake_opensm import FakeBridge, FakeSource, job

JOBS = (job("1", "n001", "n005", "n009"), job("2", "n002", "n006"))


class World:
    """An agent whose outside parties are stand-ins; the fabric is a file."""

    def __init__(self, folder: Path, of: Fabric | None = None, **agent: Any) -> None:
        self.folder = folder
        self.net = folder / "fabric.net"
        write_ibsim_net(of or load_fabric("xgft:2;4,4;1,2"), self.net)
        self.bridge = FakeBridge(folder / "run", self.fabric)
        self.source = FakeSource(JOBS)
        self.keys = {"mode": "install", "state_dir": str(folder / "state")} | agent
        self.agent = self.restart()

    @property
    def fabric(self) -> Fabric:
        return read_ibsim_net(self.net.read_text())

    def restart(self, topology: str = "", traffic: str = "") -> Agent:
        keys = self.keys | {"run_dir": str(self.folder / "run")}
        config = Config.model_validate(
            {
                "agent": keys,
                "slurm": {"topology_conf": topology},
                "fabric": {"file": str(self.net), "traffic": traffic},
                "opensm": {"plugin_socket": str(self.bridge.socket_path)},
            },
            strict=False,
        )
        self.agent = build_agent(config, self.bridge.manager, self.source)
        return self.agent

    def once(self) -> Report:
        return self.agent.pass_once()

    def cut(self, spine: int = 0) -> None:
        """A cable from the first leaf dies; OpenSM notices."""
        fabric = self.fabric
        down = np.flatnonzero(
            (fabric.channel_source == 0) & (fabric.channel_port == 5 + spine)
        ).tolist()
        write_ibsim_net(fabric.with_links_down(down), self.net)
        self.bridge.topology_changes += 1

    def value(self, name: str, **labels: str) -> float | None:
        return self.agent.metrics.registry.get_sample_value(name, labels)


class Repaired(World):
    """A world whose plugin repairs by itself; the agent improves nothing until the test asks."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, reoptimise_seconds=3600)

    def cut_and_repair(self) -> None:
        self.cut()
        self.bridge.repair(self.fabric)

    @property
    def egress(self) -> np.ndarray:
        """In force, on the fabric's indices."""
        assert self.bridge.tables
        return file_to_routes(self.fabric, self.bridge.tables).egress


ROW = Row(
    at=1.5,
    who="agent",
    reason="jobs_changed",
    why="1 multi-switch jobs started, 0 ended",
    result="installed",
    message="",
    engine="sar",
    generation=7,
    jobs=3,
    seconds=0.25,
    entries_changed=12,
    before={"effective_efi_max": 4},
    predicted={"effective_efi_max": 2},
    achieved=None,
)
SAVED_JOBS = frozenset({frozenset({"n1", "n5"}), frozenset({"n2", "n6"})})
STATE = State(
    generation=7,
    engine="sar",
    jobs=SAVED_JOBS,
    fabric_digest="ab" * 32,
    identity="7",
    installed_at=1.5,
)
