"""The agent as a process of its own, on a simulated fabric, a stock OpenSM and a real Slurm."""

from __future__ import annotations

import json
import sys

from sar_agent.agent.history import History, Row
from sar_agent.lab.live.ibsim import Ibsim
from sar_agent.lab.live.opensm import OpenSM
from sar_agent.lab.live.process import Daemon
from sar_agent.lab.live.slurm import SlurmCluster

_CONFIG = """\
[agent]
mode = "install"
interval_seconds = 0.5
settle_seconds = 0.3
state_dir = "{state}"
run_dir = "{run}"
metrics_address = ""

[slurm]
topology_conf = "{topology}"

[fabric]
# Through env, since a tool that talks to ibsim works in a scratch folder.
command = ["env", "-C", "{scratch}", "ibnetdiscover"]
environment = {{ {environment} }}

[opensm]
bridge_socket = "{socket}"
poll_seconds = 0.2
"""


class AgentProcess:
    """`sar-agent run` in install mode, looking twice a second; stopped when closed.

    `history` tells every decision; `log` is what it said.
    """

    def __init__(self, ibsim: Ibsim, manager: OpenSM, slurm: SlurmCluster, host: str) -> None:
        """`host` is the node of the fabric on which it asks for the network."""
        folder = manager.folder / "agent"
        folder.mkdir()
        self.log_path = folder / "log"
        environment = {
            name: value
            for name, value in ibsim.env(host).items()
            if name in ("LD_PRELOAD", "IBSIM_SOCKNAME", "SIM_HOST")
        }
        self.config = folder / "sar-agent.toml"
        self.config.write_text(
            _CONFIG.format(
                state=folder / "state",
                run=manager.run_dir,
                topology=slurm.topology_conf,
                scratch=ibsim.scratch,
                environment=", ".join(f"{k} = {json.dumps(v)}" for k, v in environment.items()),
                socket=manager.socket_path,
            )
        )
        self._history = History(folder / "state")
        self._env = ibsim.env() | slurm.env()
        self._daemon: Daemon | None = None
        self._told = 0

    def __enter__(self) -> AgentProcess:
        del self._env["LD_PRELOAD"]  # for ibnetdiscover alone
        main = "from sar_agent.cli import main; main()"
        command = [sys.executable, "-c", main, "run", "--config", str(self.config)]
        self._daemon = Daemon(command, self.log_path, self._env)
        return self

    def __exit__(self, *error: object) -> None:
        if self._daemon:
            self._daemon.stop(10)

    @property
    def log(self) -> str:
        """All it said."""
        return self.log_path.read_text(errors="replace")

    def news(self) -> list[Row]:
        """Decisions since the last call, the oldest first. Raises SarError if it has ended."""
        if self._daemon:
            self._daemon.check()
        rows = self._history.last(1000)[::-1]
        fresh, self._told = rows[self._told :], len(rows)
        return fresh
