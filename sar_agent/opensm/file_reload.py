"""Has a subnet manager without our plugin sweep: a signal to its process, or the site's command."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from sar_agent.config.opensm import OpensmConfig
from sar_agent.errors import Unavailable
from sar_agent.util.programs import run_program

LONGEST_OUTPUT = 65536
"""Bytes that the command may print."""


class SweepRequest:
    """By `reload_command` where there is one, else by SIGHUP to the process in `pid_file`."""

    def __init__(self, config: OpensmConfig) -> None:
        self.pid_file = Path(config.pid_file) if config.pid_file else None
        self.command, self.deadline = config.reload_command, config.load_deadline_seconds

    def process(self) -> int:
        """OpenSM's process; 0 where no file names it. Raises `Unavailable` where it has ended."""
        if self.pid_file is None:
            return 0
        try:
            pid = int(self.pid_file.read_text().strip())
            name = Path(f"/proc/{pid}/comm").read_text().strip()
        except FileNotFoundError as error:
            gone = "does not exist" if error.filename == str(self.pid_file) else "names no process"
            raise Unavailable(f"OpenSM is not running: {self.pid_file} {gone}") from error
        except (OSError, ValueError) as error:
            raise Unavailable(f"{self.pid_file} holds no process number ({error})") from error
        if not name.startswith("opensm"):
            raise Unavailable(
                f"OpenSM is not running: process {pid} of {self.pid_file} is {name!r}, which is "
                "not signalled"
            )
        return pid

    def send(self) -> None:
        """Raises `Unavailable` where the process or the command does not take it."""
        if self.command:
            run_program(
                self.command,
                deadline=self.deadline,
                most=LONGEST_OUTPUT,
                remedy="set opensm.reload_command",
            )
            return
        pid = self.process()
        try:
            handle = os.pidfd_open(pid)
        except OSError as error:
            raise Unavailable(f"OpenSM (process {pid}) has ended") from error
        try:
            self.process()  # the number is still OpenSM's: the handle cannot come to mean another
            signal.pidfd_send_signal(handle, signal.SIGHUP)
        except PermissionError as error:
            raise Unavailable(
                f"this user may not signal OpenSM (process {pid}); set opensm.reload_command to a "
                "command that may, such as sudo with one line in sudoers"
            ) from error
        except OSError as error:
            raise Unavailable(f"cannot signal OpenSM ({pid}): {error.strerror}") from error
        finally:
            os.close(handle)
