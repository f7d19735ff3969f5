"""Agents that start at once: a process with all imports done and all kernels in memory forks one
for each line that it reads. A fork is a process of its own, and SIGKILL ends it as it would end
the service; only seconds of imports are saved, without which a thousand kills take hours.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from sar_lab.live.process import wait_until
from tests.worlds.live.site import ROOT


class Forks:
    """Starts `sar-agent run` with the settings at `config`; what all of them log is in `log`."""

    def __init__(self, config: Path, log: Path) -> None:
        self.pid = 0
        """Of the newest agent."""
        with log.open("ab") as said:
            self._parent = subprocess.Popen(
                [sys.executable, "-m", __name__, str(config)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )

    def start(self) -> None:
        """One more."""
        assert self._parent.stdin and self._parent.stdout
        self._parent.stdin.write("start\n")
        self._parent.stdin.flush()
        self.pid = int(self._parent.stdout.readline())

    def alive(self) -> bool:
        """Whether the newest runs."""
        return bool(self.pid) and Path(f"/proc/{self.pid}").exists()

    def kill(self) -> None:
        """kill -9."""
        if self.alive():
            os.kill(self.pid, signal.SIGKILL)
            assert wait_until(lambda: not self.alive(), 30, 0.001)

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()
        self._parent.communicate()


def main(config: Path) -> None:
    """Fork an agent for each line of stdin, and print its process number."""
    from sar_agent.agent.daemon import run
    from sar_agent.agent.rehearsal import rehearse
    from sar_agent.commands.service import log_to_stderr
    from sar_agent.config.model import load_config

    rehearse(load_config(config))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    for _ in sys.stdin:
        if pid := os.fork():
            print(pid, flush=True)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(0, 1)
        log_to_stderr()
        run(load_config(config))
        os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
