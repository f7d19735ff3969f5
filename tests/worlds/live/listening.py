"""A running agent without Slurm and OpenSM: it observes a fabric in a file and receives events."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sar_agent.fabric import Fabric
from sar_agent.fabric.ibsim_net import write_ibsim_net
from sar_agent.fabric.lids import assign_lids
from sar_agent.fabric.spec import load_fabric
from sar_lab.live.agent import AT_ONCE
from sar_lab.live.process import free_port, wait_until
from tests.worlds.fake_squeue import fake_squeue
from tests.worlds.live.agent_process import CLI, run_agent, scrape, write_config
from tests.worlds.live.built import ROOT
from tests.worlds.live.munged import NOBODY, tell

FABRIC = "xgft:2;4,4;1,2"


def with_lids(fabric: Fabric, lmc: int) -> Fabric:
    """As after a sweep of an OpenSM with that LMC."""
    if not lmc:
        return fabric
    switch, terminal = assign_lids(fabric, lmc)
    return replace(fabric, lmc=lmc, switch_lid=switch, terminal_lid=terminal)


@dataclass
class Agent:
    """`sar-agent run`, observing; jobs are what the fake squeue says, and looks are far apart."""

    folder: Path
    munge: Path
    tcp: tuple[str, int]
    process: subprocess.Popen[bytes]

    socket: Path | None = None

    @property
    def unix(self) -> Path:
        return self.socket or self.folder / "run" / "events.sock"

    def metrics(self) -> dict[tuple[str, ...], float]:
        return scrape(self.tcp[1] + 1)

    def refused(self, why: str) -> float:
        return self.metrics().get(("sar_agent_events_refused_total", why), 0)

    def heard(self) -> float:
        """The number of accepted events, queried from the agent."""
        return sum(tell(self.unix, b"status")["status"]["events"].values())

    def looks(self) -> float:
        return self.metrics()["sar_agent_stage_seconds_count", "slurm"]

    def jobs(self, *jobs: dict[str, str]) -> None:
        fake_squeue(self.folder, jobs)

    def log(self) -> str:
        return (self.folder / "agent.log").read_text()

    def cli(self, *words: str) -> str:
        return subprocess.run(
            [*CLI, *words, "--config", str(self.folder / "sar-agent.toml")],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def hears(self) -> bool:
        assert self.process.poll() is None, self.log()
        return tell(self.unix, b"status")["ok"] is True


def start(
    folder: Path,
    munge: Path,
    *,
    squeue: str = "",
    fabric: str = FABRIC,
    more: dict[str, Any] | None = None,
    env: dict[str, str] | None = None,
    bridge: Path | None = None,
    planned: str = "planned, not installed",
    lmc: int = 0,
    **keys: Any,
) -> Agent:
    """`keys` are of [events], `more` of [agent]; returns once it has planned."""
    write_ibsim_net(with_lids(load_fabric(fabric), lmc), folder / "fabric.net")
    squeue = squeue or fake_squeue(
        folder, [{"%i": "7", "%A": "7", "%N": "n[001,005]", "%U": str(NOBODY)}]
    )
    port = free_port(2)
    agent: dict[str, Any] = {
        "state_dir": str(folder / "state"),
        "run_dir": str(folder / "run"),
        "metrics_address": f"127.0.0.1:{port + 1}",
        "interval_seconds": 1000,
        **AT_ONCE,
        "debounce_seconds": 0,
        **(more or {}),
    }
    events = {"tcp_address": f"127.0.0.1:{port}", "munge_socket": str(munge)} | keys
    sections = {
        "agent": agent,
        "slurm": {"squeue": [squeue], "topology_conf": ""},
        "fabric": {"file": str(folder / "fabric.net")},
        "opensm": {"plugin_socket": str(bridge or folder / "none.sock")},
        "events": events,
    }
    process = run_agent(write_config(folder, sections), env)
    made = Agent(
        folder, munge, ("127.0.0.1", port), process, Path(agent["run_dir"]) / "events.sock"
    )
    assert wait_until(lambda: planned in made.log(), 120), made.log()
    return made
