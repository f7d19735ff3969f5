"""Finds, starts, watches and stops the daemons of the harness."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

from sar_agent.errors import SarError, Unavailable

PATIENCE = float(os.environ.get("SAR_PATIENCE", "1"))
"""A factor for all time limits, for busy machines; the load makes it larger (`patience`)."""
LARGEST_PATIENCE = 20.0
"""However busy the machine, what does not happen at all must fail some day."""
_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def patience() -> float:
    """How many times as long as on a quiet machine to wait, by the load of now."""
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    return max(PATIENCE, min(load, LARGEST_PATIENCE))


def find_program(name: str, package: str) -> str:
    """The path of a program. Raises SarError with the Debian package that contains it."""
    path = shutil.which(name, path=_PATH)
    if path is None:
        raise SarError(
            f"{name} is not installed: run tests/install-debian-packages (Debian package {package})"
        )
    return path


def require(package: str, *programs: str) -> None:
    """Raise SarError with the remedy unless all `programs` of a Debian package can be found."""
    for program in programs:
        find_program(program, package)


def free_port(count: int = 1) -> int:
    """The first of `count` consecutive TCP ports that are free on loopback.

    They are below the range of ports for outgoing connections, so that the kernel does not use one
    before the daemon binds it; nor does another process that calls this.
    """
    for _ in range(200):
        first = 10000 + secrets.randbelow(32768 - 10000 - count)
        if all(map(_is_free, range(first, first + count))) and _reserve(first, count):
            return first
    raise SarError(f"no {count} consecutive free TCP ports between 10000 and 32768")


_BLOCK, _KEPT = 32, 8
_RESERVED = deque[list[socket.socket]]()
"""Of the last `_KEPT` calls: the daemons of those before have bound their ports."""


def _reserve(first: int, count: int) -> bool:
    """Whether no process of this machine has just been given one of these ports. A block of ports
    is a Unix socket without a file, which ends with its process."""
    held = list[socket.socket]()
    for block in range(first // _BLOCK, (first + count - 1) // _BLOCK + 1):
        held.append(socket.socket(socket.AF_UNIX))
        try:
            held[-1].bind(f"\0sar-agent-ports-{block}")
        except OSError:
            _give_up(held)
            return False
    _RESERVED.append(held)
    if len(_RESERVED) > _KEPT:
        _give_up(_RESERVED.popleft())
    return True


def _give_up(held: list[socket.socket]) -> None:
    for one in held:
        one.close()


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def wait_until(true: Callable[[], bool], seconds: float, pause: float = 0.05) -> bool:
    """Call `true` every `pause` seconds until it holds or `seconds` times `patience()` have passed,
    of which the largest counts that there was; returns its last value."""
    begin, factor = time.monotonic(), 0.0
    while not (answer := true()):
        factor = max(factor, patience())
        if time.monotonic() - begin >= seconds * factor:
            break
        time.sleep(pause)
    return answer


def wait_for(
    holds: Callable[[], bool],
    seconds: float,
    what: str,
    *,
    alive: Callable[[], bool] = lambda: True,
    last_words: Callable[[], str] = lambda: "",
) -> None:
    """Like `wait_until`, but raises Unavailable if `what` does not happen in time, or if the
    process ends first; the error then has the end of `last_words`. A state that held once has
    happened, even if the next one has begun when the caller looks."""
    happened = False

    def over() -> bool:
        nonlocal happened
        happened = holds()
        return happened or not alive()

    wait_until(over, seconds)
    if happened:
        return
    if not alive():
        raise Unavailable(f"{what}: the process has ended; {last_words()[-1500:]}")
    raise Unavailable(f"{what} did not happen within {waited(seconds)}")


def waited(seconds: float) -> str:
    """How long a wait of `seconds` on a quiet machine has lasted on this one, with its load."""
    load, count = os.getloadavg()[0], os.cpu_count() or 1
    return f"{seconds * patience():.0f} s (load average {load:.0f}, {count} processors)"


class Daemon:
    """A daemon in the foreground with its output in the file `log`.

    It ends with the thread that started it (`setpriv --pdeathsig`), even if this process is killed
    by SIGKILL; so start it from a thread that lasts.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        env: Mapping[str, str] | None = None,
        *,
        cwd: Path | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        self.name = Path(command[0]).name
        self.log = log
        # env(1) sets the environment after setpriv, which must not load libumad2sim (LD_PRELOAD).
        given = [] if env is None else ["env", "-i", *(f"{k}={v}" for k, v in env.items())]
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *given, *command],
                stdin=stdin,
                stdout=output,
                stderr=output,
                cwd=cwd,
                start_new_session=True,  # Ctrl-C in a demo is ours to handle, not the daemon's
            )
        self.pid = self._process.pid

    def alive(self) -> bool:
        """Whether the daemon still runs."""
        return self._process.poll() is None

    def check(self) -> None:
        """Raise SarError with the end of the log if the daemon has ended."""
        if not self.alive():
            raise SarError(
                f"{self.name} ended with exit code {self._process.returncode}: {self.tail()}"
            )

    def tail(self) -> str:
        """The last lines of the log, joined."""
        lines = self.log.read_text(errors="replace").split("\n")[-6:] if self.log.exists() else []
        return " / ".join(line.strip() for line in lines if line.strip()) or "its log is empty"

    @property
    def stdin(self) -> IO[bytes]:
        """The standard input of a daemon that was started with `stdin=PIPE`."""
        assert self._process.stdin is not None
        return self._process.stdin

    def signal(self, number: int) -> None:
        """Send a signal to this process only, if it still runs."""
        self._process.send_signal(number)

    def wait(self, seconds: float = 10.0) -> int:
        """Wait for the end of the daemon; returns its exit code."""
        return self._process.wait(seconds)

    def stop(self, seconds: float = 5.0) -> int:
        """Send SIGTERM, and SIGKILL after `seconds`; returns the exit code after the end."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        if self.alive():
            self._process.kill()
        code = self._process.wait()
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
