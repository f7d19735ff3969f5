"""One daemon as a child of ours: started, watched, and gone at the end whatever happens."""

from __future__ import annotations

import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from sar_agent.errors import SarError


def require(package: str, *programs: str) -> None:
    """Raise SarError with the remedy unless all `programs` of a Debian package can be found."""
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        raise SarError(f"{', '.join(missing)}: not found; run: apt-get install {package}")


def free_port(count: int = 1) -> int:
    """The first of `count` consecutive TCP ports that are free on loopback.

    Below the range from which the kernel takes ports for outgoing connections, so that none is
    taken by chance before the daemon binds it.
    """
    for _ in range(200):
        first = 10000 + secrets.randbelow(32768 - 10000 - count)
        if all(map(_is_free, range(first, first + count))):
            return first
    raise SarError(f"no {count} consecutive free TCP ports between 10000 and 32768")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def wait_until(true: Callable[[], bool], seconds: float, pause: float = 0.05) -> bool:
    """Ask every `pause` seconds until `true()` or `seconds` are over; the last answer."""
    end = time.monotonic() + seconds
    while not (answer := true()) and time.monotonic() < end:
        time.sleep(pause)
    return answer


class Daemon:
    """A daemon in the foreground, its output in the file `log`.

    It dies with the thread that started it (`setpriv --pdeathsig`), so that not even a `kill -9`
    of this process leaves it running; start it from a thread that stays.
    """

    def __init__(
        self, command: Sequence[str], log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = Path(command[0]).name
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=None if env is None else dict(env),
                start_new_session=True,  # Ctrl-C in a demo is ours to handle, not the daemon's
            )
        self.pid = self._process.pid

    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def check(self) -> None:
        """Raise SarError with the end of its log if it has ended."""
        if not self.alive():
            raise SarError(
                f"{self.name} ended with exit code {self._process.returncode}: {self.tail()}"
            )

    def tail(self) -> str:
        """The last lines of its log, as one."""
        lines = self.log.read_text(errors="replace").split("\n")[-6:] if self.log.exists() else []
        return " / ".join(line.strip() for line in lines if line.strip()) or "it said nothing"

    def signal(self, number: int) -> None:
        """Send a signal; nothing happens if it has ended."""
        self._process.send_signal(number)

    def stop(self, seconds: float = 5.0) -> None:
        """SIGTERM, then after `seconds` SIGKILL; returns when it is gone."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            return
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
