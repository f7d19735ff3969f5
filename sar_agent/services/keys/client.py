"""Routing keys for an application, requested and released at the boundaries of its phases.

    from sar_agent.services.keys import client

    with client.phase("halo", pattern="stencil3d:4x4x4") as key:
        ...  # send with key.offset; it is 0 if there is no key, and key.sentence says why

One process of the job, such as rank 0, requests the key and tells the others. No call waits longer
than its argument `wait`. If anything is missing (the agent, munge, a free LID offset), the answer
is offset 0 and the job continues as without keys; only an invalid request raises. This module needs
no more than the standard library and the program `munge`. slurm_spank/KEYS.md describes the
messages.
"""

from __future__ import annotations

import json
import os
import pwd
import secrets
import socket
import struct
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from sar_agent.errors import InputError, Unavailable
from sar_agent.events.answers import LONGEST_ANSWER, decode_answer

AGENT = "/run/sar-agent/events.sock"
"""Where the agent listens, unless SAR_AGENT is set to another path or HOST:PORT."""
LONGEST_REQUEST = 65536
"""Bytes in a request, at most."""
AGENT_USER = "sar-agent"
"""User that the agent runs as, unless SAR_AGENT_USER is set to another name or uid."""


@dataclass(frozen=True)
class KeyAnswer:
    """The answer to a request. `offset` is the LID offset to send with, 0 if there is no key."""

    phase: str
    offset: int = 0
    sentence: str = ""
    """Why there is no key."""
    own: int = 0
    """Largest number of flows of the phase on one link."""
    total: int = 0
    """Largest number of flows of all keys on one link."""
    ends: float | None = None
    """When the lease ends, in Unix seconds; None: with the job."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables for processes that the application starts now."""

    @property
    def in_force(self) -> bool:
        """Whether the routes of the key are in force."""
        return self.offset > 0


_SAID = ("offset", "sentence", "own", "total", "ends")
"""Fields of a `KeyAnswer` that the agent's answer has, too."""


def request(
    phase: str,
    *,
    pattern: str | None = None,
    pairs: Iterable[tuple[int, int]] | None = None,
    job: str | int | None = None,
    tasks: str | None = None,
    lease: float | None = None,
    wait: float = 10.0,
    agent: str | None = None,
) -> KeyAnswer:
    """Requests routes for the traffic of `phase`: the name of a `pattern`, or `pairs` of ranks
    (from, to).

    Waits up to `wait` seconds until they are in force. A repeated request renews the lease of
    `lease` seconds. `job` and `tasks` (tasks on each node, `2(x3),1`) default to Slurm's variables
    of this process. Raises `InputError` for an invalid request.
    """
    flat = [rank for pair in pairs or () for rank in pair]
    if (pattern is None) == (not flat):
        raise InputError("give either a pattern or pairs of ranks")
    wish = {
        "traffic": pattern,
        "pairs": flat or None,
        "nodes": os.environ.get("SLURM_STEP_NODELIST"),
        "tasks": tasks or os.environ.get("SLURM_STEP_TASKS_PER_NODE") or os.environ.get(
            "SLURM_TASKS_PER_NODE"),
        "lease": lease,
    }  # fmt: skip
    end = time.monotonic() + wait
    while True:
        left = max(0.1, end - time.monotonic())
        try:
            answer = ask("key", job, left, agent, phase=phase, **wish)
        except Unavailable as error:
            return KeyAnswer(phase, sentence=str(error))
        if answer.get("state") != "waiting":
            break
        pause = float(answer.get("retry", 0.1))
        if time.monotonic() + pause >= end:
            return KeyAnswer(phase, sentence=f"the key was not in force within {wait:g} s")
        time.sleep(pause)
    said = {name: answer[name] for name in _SAID if name in answer}
    return KeyAnswer(phase, environment=answer.get("env", {}), **said)


def done(phase: str | None = None, *, job: str | int | None = None, wait: float = 2.0,
         agent: str | None = None) -> list[str]:  # fmt: skip
    """Reports that a phase, or every phase, has ended, so that its offset becomes free. Returns the
    phases that had a key. Raises `InputError` if none had one, `Unavailable` if the agent does not
    answer; then the key ends with its lease."""
    return list(ask("key-done", job, wait, agent, phase=phase)["phases"])


def keys(*, job: str | int | None = None, wait: float = 2.0,
         agent: str | None = None) -> list[dict[str, Any]]:  # fmt: skip
    """The keys of the job that are in force. Raises `Unavailable` if the agent does not answer."""
    return list(ask("key-list", job, wait, agent)["keys"])


@contextmanager
def phase(name: str, **wish: Any) -> Iterator[KeyAnswer]:
    """A key for the duration of the block; `wish` holds the arguments of `request`."""
    answer = request(name, **wish)
    try:
        yield answer
    finally:
        if answer.in_force:
            same = {option: wish[option] for option in ("job", "agent") if option in wish}
            with suppress(Unavailable, InputError):  # the key ends with its lease
                done(name, **same)


def ask(
    event: str, job: str | int | None, wait: float, agent: str | None, **fields: Any
) -> dict[str, Any]:
    """Sends a message and returns the answer. Raises `InputError` if the agent refuses it,
    `Unavailable` if there is no answer."""
    number = str(job if job is not None else os.environ.get("SLURM_JOB_ID", ""))
    if not number.isdecimal():
        raise InputError(
            "no job is given", remedy="run it inside a job, or give Slurm's job number (--job)"
        )
    message = {"v": 1, "event": event, "job": number, "user": os.getuid(), "at": time.time()}
    message |= {"id": secrets.token_hex(8)} | {k: v for k, v in fields.items() if v is not None}
    payload = json.dumps(message, separators=(",", ":")).encode()
    if len(payload) > LONGEST_REQUEST:
        raise InputError(
            f"a request has at most {LONGEST_REQUEST} bytes, this one {len(payload)}",
            remedy="use the name of a pattern, or request fewer pairs at a time",
        )
    lines = _talk(agent or os.environ.get("SAR_AGENT") or AGENT, payload, wait)
    try:
        answer = decode_answer(lines)
    except ValueError as error:
        raise Unavailable("the agent's answer does not follow KEYS.md") from error
    if not answer["ok"]:
        raise InputError(answer["error"])
    return answer


def credential(payload: bytes, wait: float, reader: int | None = None) -> bytes:
    """`payload`, signed by munge with the uid of this process. If `reader` is given, only that uid
    can decode it. Raises `Unavailable`."""
    command = ["munge"]
    if path := os.environ.get("SAR_MUNGE_SOCKET"):
        command += ["--socket", path]
    if reader is not None:
        command += ["--restrict-uid", str(reader)]
    try:
        done = subprocess.run(command, input=payload, capture_output=True, timeout=wait)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"munge cannot sign the request ({error})") from error
    if done.returncode:
        problem = done.stderr.decode(errors="replace").strip().removeprefix("munge: Error: ")
        raise Unavailable(f"munge does not sign: {problem}")
    return done.stdout.strip()


def _reader(stream: socket.socket) -> int | None:
    """The uid that may decode the message: on this machine, that of the listening process, from the
    kernel; over a network, the agent's user, if this machine has one."""
    if stream.family == socket.AF_UNIX:
        peer = stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
        return int(struct.unpack("iII", peer)[1])
    user = os.environ.get("SAR_AGENT_USER", AGENT_USER)
    if user.isdecimal():
        return int(user)
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None


def _talk(agent: str, payload: bytes, wait: float) -> bytes:
    try:
        with _connect(agent, wait) as stream:
            line = credential(payload, wait, _reader(stream)) + b"\n"
        # Connects again, since munge may take longer than the agent waits for a line.
        with _connect(agent, wait) as stream, stream.makefile("rb") as answer:
            stream.sendall(line)
            return answer.read(LONGEST_ANSWER)
    except OSError as error:
        raise Unavailable(f"the agent at {agent} does not answer ({error})") from error


def _connect(agent: str, wait: float) -> socket.socket:
    host, _, port = agent.rpartition(":")
    if agent.startswith("/"):
        stream = socket.socket(socket.AF_UNIX)
        stream.settimeout(wait)
        stream.connect(agent)
        return stream
    if port.isdecimal():
        return socket.create_connection((host.strip("[]"), int(port)), wait)
    raise InputError(f"{agent!r} is neither HOST:PORT nor an absolute path")
