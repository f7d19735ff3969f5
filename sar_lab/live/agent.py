"""The agent as a process of its own, on a simulated fabric, a stock OpenSM and a real Slurm."""

from __future__ import annotations

import os
import signal
import sys

from sar_agent.agent.history import DECISION, History, Row
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import Daemon
from sar_lab.live.slurm import SlurmCluster

AT_ONCE = {
    "debounce_seconds": 0.5,
    "debounce_max_seconds": 3,
    "min_install_interval_seconds": 0,
    "min_gain": 0,
    "max_staleness_seconds": 60,
}
"""Keys of [agent] with which it acts on every change of the jobs at once."""
_CONFIG = """\
[agent]
mode = "install"
min_install_interval_seconds = 5
state_dir = "{state}"
run_dir = "{run}"
metrics_address = ""

[slurm]
topology_conf = "{topology}"

[opensm]
plugin_socket = "{socket}"

[events]
munge_socket = "{munge}"
"""


class AgentProcess:
    """`sar-agent run` in install mode; it stops when it is closed. It gets the fabric from OpenSM's
    plugin and cannot send MADs. It runs where slurmctld does, and is told of jobs at `events`.

    `news` returns its new decisions, `log` the text of its log.
    """

    def __init__(self, manager: OpenSM, slurm: SlurmCluster) -> None:
        folder = manager.folder / "agent"
        folder.mkdir()
        self.log_path = folder / "log"
        self.config = folder / "sar-agent.toml"
        self.config.write_text(
            _CONFIG.format(
                state=folder / "state",
                run=manager.run_dir,
                topology=slurm.topology_conf,
                socket=manager.socket_path,
                munge=slurm.munge_socket,
            )
        )
        self.events = manager.run_dir / "events.sock"
        self._enter = slurm.enter
        self._history = History(folder / "state")
        self._env = {**os.environ, **slurm.env()}
        self._daemon: Daemon | None = None
        self._reported = 0

    def start(self) -> AgentProcess:
        """Start it (again)."""
        main = "from sar_agent.cli import main; main()"
        command = [*self._enter, sys.executable, "-c", main, "run", "--config", str(self.config)]
        self._daemon = Daemon(command, self.log_path, self._env)
        return self

    def kill(self) -> None:
        """End it by SIGKILL, as in a crash."""
        if self._daemon:
            self._daemon.signal(signal.SIGKILL)
            self._daemon.wait()
            self._daemon = None

    def __enter__(self) -> AgentProcess:
        return self.start()

    def __exit__(self, *error: object) -> None:
        if self._daemon:
            self._daemon.stop(10)

    @property
    def log(self) -> str:
        """The whole log."""
        return self.log_path.read_text(errors="replace")

    def news(self) -> list[Row]:
        """Decisions since the last call, the oldest first. Raises SarError if the agent has
        ended."""
        if self._daemon:
            self._daemon.check()
        rows = self._history.last(1000, DECISION)[::-1]
        fresh, self._reported = rows[self._reported :], len(rows)
        return fresh
