"""Routing keys for an application, at the boundaries of its phases: RODRequest and RODDone.

    from sar_agent import key

    with key.phase("halo", pattern="stencil3d:4x4x4") as mine:
        ...  # send with mine.offset: it is 0 where there is no key, and mine.sentence says why

One process of the job speaks (rank 0, say) and tells the others. Nothing here waits longer than it
is told to, and whatever is missing (agent, munge, a free LID offset), the answer is offset 0: the
job goes on as it would have. Only a wish that makes no sense raises. This module needs the standard
library and libmunge only; what is said is in slurm_spank/KEYS.md.
"""

from __future__ import annotations

import ctypes
import json
import os
import pwd
import secrets
import socket
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from sar_agent.errors import InputError, Unavailable

AGENT = "/run/sar-agent/events.sock"
"""Where the agent listens, unless SAR_AGENT says another path or HOST:PORT."""
LONGEST = 65536
"""Bytes of a request."""
AGENT_USER = "sar-agent"
"""As whom the agent runs, unless SAR_AGENT_USER says another name or number."""
_SOCKET_OPTION, _UID_OPTION = 8, 9  # of munge.h


@dataclass(frozen=True)
class KeyAnswer:
    """What came of a request. `offset` is the LID offset to send with, 0 where there is no key."""

    phase: str
    offset: int = 0
    sentence: str = ""
    """Why there is none."""
    own: int = 0
    """Most flows of the phase over one link."""
    total: int = 0
    """And with those of all other keys."""
    ends: float | None = None
    """Unix seconds; None: with the job."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """For processes that are started now."""

    @property
    def in_force(self) -> bool:
        """Whether the routes are there."""
        return self.offset > 0


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
    """Routes for the traffic of `phase`: a `pattern` by name, or `pairs` of ranks (from, to).

    Waits up to `wait` seconds until they are in force. Asked again, it lengthens the lease (of
    `lease` seconds). `job` and `tasks` (tasks of each node, `2(x3),1`) are Slurm's of this process
    if not given. Raises `InputError` for what makes no sense.
    """
    flat = [rank for pair in pairs or () for rank in pair]
    if (pattern is None) == (not flat):
        raise InputError("a key is for a pattern or for pairs of ranks, one of them")
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
    return KeyAnswer(
        phase,
        int(answer.get("offset", 0)),
        str(answer.get("sentence", "")),
        int(answer.get("own", 0)),
        int(answer.get("total", 0)),
        answer.get("ends"),
        {str(name): str(value) for name, value in answer.get("env", {}).items()},
    )


def done(phase: str | None = None, *, job: str | int | None = None, wait: float = 2.0,
         agent: str | None = None) -> list[str]:  # fmt: skip
    """The phase (or every one) is over, its offset is free. Returns the phases that had a key.
    Raises `InputError` where none had, `Unavailable` where nobody answers: the lease ends it."""
    return list(ask("key-done", job, wait, agent, phase=phase)["phases"])


def keys(*, job: str | int | None = None, wait: float = 2.0,
         agent: str | None = None) -> list[dict[str, Any]]:  # fmt: skip
    """The job's keys in force. Raises `Unavailable` where nobody answers."""
    return list(ask("key-list", job, wait, agent)["keys"])


@contextmanager
def phase(name: str, **wish: Any) -> Iterator[KeyAnswer]:
    """A key for the time of the block; `wish` as of `request`."""
    mine = request(name, **wish)
    try:
        yield mine
    finally:
        if mine.in_force:
            about = {key: wish[key] for key in ("job", "agent") if key in wish}
            with suppress(Unavailable, InputError):  # then its lease ends
                done(name, **about)


def ask(
    event: str, job: str | int | None, wait: float, agent: str | None, **words: Any
) -> dict[str, Any]:
    """One message, one answer. Raises `InputError` where the agent refuses, `Unavailable`."""
    number = str(job if job is not None else os.environ.get("SLURM_JOB_ID", ""))
    if not number.isdecimal():
        raise InputError(
            "no job is named", remedy="run it inside a job, or give Slurm's number of one (--job)"
        )
    said = {"v": 1, "event": event, "job": number, "user": os.getuid(), "at": time.time()}
    said |= {"id": secrets.token_hex(8)} | {k: v for k, v in words.items() if v is not None}
    payload = json.dumps(said, separators=(",", ":")).encode()
    if len(payload) > LONGEST:
        raise InputError(
            f"a request has at most {LONGEST} bytes, this one {len(payload)}",
            remedy="name a pattern, or ask for fewer pairs at a time",
        )
    line = _talk(agent or os.environ.get("SAR_AGENT") or AGENT, payload, wait)
    try:
        answer = json.loads(line)
        refusal = None if answer["ok"] else str(answer.get("error", "refused"))
    except (ValueError, KeyError, TypeError) as error:
        raise Unavailable("the agent's answer is none of KEYS.md") from error
    if refusal is not None:
        raise InputError(refusal)
    return dict(answer)


def credential(payload: bytes, reader: int | None = None) -> bytes:
    """`payload` signed by munge with this process's uid; only the uid `reader` can decode it, where
    one is given. Raises `Unavailable`."""
    try:
        library = ctypes.CDLL("libmunge.so.2")
    except OSError as error:
        raise Unavailable("libmunge.so.2 is not installed here, so nobody believes us") from error
    library.munge_ctx_create.restype = ctypes.c_void_p
    library.munge_strerror.restype = ctypes.c_char_p
    library.munge_ctx_destroy.restype = None
    free = ctypes.CDLL(None).free
    free.restype, free.argtypes = None, [ctypes.c_void_p]
    context, found = ctypes.c_void_p(library.munge_ctx_create()), ctypes.c_void_p()
    try:
        if path := os.environ.get("SAR_MUNGE_SOCKET"):
            library.munge_ctx_set(context, _SOCKET_OPTION, ctypes.c_char_p(path.encode()))
        if reader is not None:
            library.munge_ctx_set(context, _UID_OPTION, ctypes.c_uint32(reader))
        code = library.munge_encode(
            ctypes.byref(found), context, ctypes.c_char_p(payload), len(payload)
        )
        if code or not found.value:
            said = library.munge_strerror(code).decode(errors="replace")
            raise Unavailable(f"munge does not sign: {said}")
        return ctypes.string_at(found.value)
    finally:
        if found.value:
            free(found)
        library.munge_ctx_destroy(context)


def _reader(stream: socket.socket) -> int | None:
    """The uid that may read what we say: who listens on this machine, as the kernel has it; behind
    a network the agent's user, where this machine knows it."""
    if stream.family == socket.AF_UNIX:
        about = stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
        return int(struct.unpack("iII", about)[1])
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
            line = credential(payload, _reader(stream)) + b"\n"
        # Once more: munge may take longer than the agent waits for a line.
        with _connect(agent, wait) as stream, stream.makefile("rb") as answer:
            stream.sendall(line)
            return answer.readline(65536)
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
