"""Runs external programs with a deadline and a bound on their output.

Output is read as it comes, and the program is killed at the first byte past the bound: a program
that prints without end would otherwise take all memory before its deadline (an endless squeue: 5.9
GB in 10 s).

**Weak spot:** a child that begins a session of its own outlives its program.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from sar_agent.errors import Unavailable

MOST_COMPLAINT = 65536
"""Bytes of stderr that are kept; further bytes are read and discarded."""
_MOST_SHOWN = 4000
"""Characters of stderr in an error."""
_PIECE = 65536


class ProgramTimedOut(Unavailable):
    """The deadline passed before the program ended."""


class OutputTooLong(Unavailable):
    """The program printed more than its bound."""


class ProgramFailed(Unavailable):
    """The program ended with another exit code than 0, or wrote on stderr where it must not."""


def run_program(
    command: Sequence[str],
    *,
    deadline: float,
    most: int,
    remedy: str,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    quiet: bool = False,
    name: str = "",
) -> str:
    """`run_program_bytes`, as UTF-8 (broken bytes are replaced)."""
    out = run_program_bytes(
        command,
        deadline=deadline,
        most=most,
        remedy=remedy,
        environment=environment,
        folder=folder,
        quiet=quiet,
        name=name,
    )
    return out.decode(errors="replace")


def run_program_bytes(
    command: Sequence[str],
    *,
    deadline: float,
    most: int,
    remedy: str,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    quiet: bool = False,
    stdin: BinaryIO | int = subprocess.DEVNULL,
    name: str = "",
) -> bytes:
    """The output of `command` on stdout.

    The program runs in a session of its own in `folder`, without a shell; it reads the open file
    `stdin`. After `deadline` seconds or `most` bytes it is killed with its children. Raises
    `Unavailable` where it cannot be started (the sentence ends with `remedy`), `ProgramTimedOut`,
    `OutputTooLong`, `ProgramFailed`; that is also for a program that must be `quiet` and wrote on
    stderr. `name`: what these call a program that another one starts.
    """
    name, end = name or command[0], time.monotonic() + deadline
    try:
        process = subprocess.Popen(
            list(command),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=folder,
            start_new_session=True,  # so that a wrapper script's children end with it
        )
    except (OSError, ValueError) as error:  # ValueError: a NUL in a word or a variable
        what = error.strerror if isinstance(error, OSError) else str(error)
        raise Unavailable(f"{command[0]} cannot be started ({what}); {remedy}") from error
    try:
        out, complaint = _read(process, name, end, deadline, most)
        try:
            code = process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired as error:  # it closed its outputs but did not end
            raise ProgramTimedOut(_late(name, deadline)) from error
    finally:
        _end(process)
    message = _one_line(complaint.decode(errors="replace"))
    if code:
        raise ProgramFailed(
            f"{name} failed with exit code {code}: {message or 'nothing on stderr'}"
        )
    if quiet and message:
        raise ProgramFailed(f"{name} ended with exit code 0, but wrote on stderr: {message}")
    return bytes(out)


def _one_line(complaint: str) -> str:
    """All of stderr, its lines joined; of an endless one the beginning and the end, since a program
    often names the cause in its last line."""
    text = " ".join(complaint.split())
    half = _MOST_SHOWN // 2
    return text if len(text) <= _MOST_SHOWN else f"{text[:half]} … {text[-half:]}"


def _late(name: str, deadline: float) -> str:
    return f"{name} gave no answer within {deadline:g} s"


@dataclass
class _Capture:
    pipe: IO[bytes]
    data: bytearray
    most: int


def _read(
    process: subprocess.Popen[bytes], name: str, end: float, deadline: float, most: int
) -> tuple[bytearray, bytearray]:
    """(all of stdout, the beginning of stderr), read until the program has closed both. Raises
    `OutputTooLong` after `most` bytes of stdout, and `ProgramTimedOut`."""
    assert process.stdout is not None and process.stderr is not None
    out = _Capture(process.stdout, bytearray(), most)
    complaint = _Capture(process.stderr, bytearray(), MOST_COMPLAINT)
    with selectors.DefaultSelector() as waiting:
        for kept in (out, complaint):
            waiting.register(kept.pipe, selectors.EVENT_READ, kept)
        while waiting.get_map():
            left = end - time.monotonic()
            if left <= 0:
                raise ProgramTimedOut(_late(name, deadline))
            for key, _ in waiting.select(left):
                kept = key.data
                piece = os.read(key.fd, _PIECE)
                if not piece:
                    waiting.unregister(kept.pipe)
                kept.data += piece[: kept.most + 1 - len(kept.data)]
            if len(out.data) > most:
                raise OutputTooLong(
                    f"{name} printed more than {_size(most)} and was killed; run it by hand to see "
                    "its output"
                )
    return out.data, complaint.data


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count} bytes"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the program and its children, if they still run; wait for a second only (NFS can
    hang)."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=1)
    for pipe in (process.stdout, process.stderr):
        if pipe:
            pipe.close()
