"""Reads the peer's snapshots over one connection, which is opened again where it ended.

What the peer sends is bounded before it is read, and compared with its digest before it is used.
"""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sar_agent.agent.history import Row
from sar_agent.standby.channel import Channel, PeerProblem, connect
from sar_agent.standby.snapshot import MOST_FILES, SnapshotFile, digest_of, largest
from sar_agent.standby.terms import Claim

_ROWS = TypeAdapter(list[Row])
_FILES = TypeAdapter(list[SnapshotFile])


@dataclass(frozen=True)
class PeerState:
    """What the peer says. `files` is None where `digest` is the one that was known."""

    claim: Claim
    digest: str
    files: tuple[SnapshotFile, ...] | None


class PeerClient:
    """Asks the agent at `address`. Methods raise `PeerProblem`."""

    def __init__(
        self, address: tuple[str, int], context: ssl.SSLContext, deadline: float = 3.0
    ) -> None:
        """`deadline`: seconds to connect."""
        self._address, self._context, self._deadline = address, context, deadline
        self._channel: Channel | None = None

    @property
    def name(self) -> str:
        """The peer's address."""
        return f"{self._address[0]}:{self._address[1]}"

    def look(self, known: str = "") -> PeerState:
        """The peer's claim and the files of its state; `known` is the digest of the last look."""
        answer = self._ask({"ask": "look", "known": known}, again=self._channel is not None)
        try:
            claim = Claim.model_validate(answer.get("claim"))
            digest = answer.get("digest")
            files = None
            if "files" in answer:
                files = tuple(_FILES.validate_python(answer["files"]))
                names = [file.name for file in files]
                if len(files) > MOST_FILES or len(set(names)) < len(names):
                    raise PeerProblem(f"{self.name}: too many files, or one of them twice")
                for file in files:
                    if file.size > largest(file.name):
                        raise PeerProblem(f"{self.name}: {file.name!r} is in no snapshot")
                if digest != digest_of(files):
                    raise PeerProblem(f"{self.name}: the digest is not that of the files")
            elif digest != known:
                raise PeerProblem(f"{self.name}: a new state without its files")
        except ValidationError as error:
            self.close()
            raise PeerProblem(
                f"{self.name}: an answer of another format ({error.error_count()} errors); both "
                "agents must have the same version"
            ) from error
        except PeerProblem:
            self.close()
            raise
        assert isinstance(digest, str)
        return PeerState(claim, digest, files)

    def get(self, files: list[SnapshotFile]) -> Iterator[tuple[SnapshotFile, bytes]]:
        """The contents of `files` of the last look."""
        if not files:
            return
        channel = self._channel
        if channel is None:
            raise PeerProblem(f"{self.name}: the connection has ended")
        try:
            channel.send({"ask": "get", "files": [file.digest for file in files]})
            for file in files:
                data = channel.receive_bytes(file.size)
                if hashlib.sha256(data).hexdigest() != file.digest:
                    raise PeerProblem(f"{self.name}: {file.name} does not have its digest")
                yield file, data
        except (PeerProblem, GeneratorExit):
            self.close()
            raise

    def rows(self, after: float) -> list[Row]:
        """The oldest of the peer's decisions after this time (Unix seconds)."""
        answer = self._ask({"ask": "rows", "after": after})
        try:
            return _ROWS.validate_python(answer.get("rows"))
        except ValidationError as error:
            raise PeerProblem(f"{self.name}: its history has another format") from error

    def close(self) -> None:
        """End the connection; the next look opens another one."""
        if self._channel:
            self._channel.close()
            self._channel = None

    def _ask(self, request: dict[str, Any], *, again: bool = False) -> dict[str, Any]:
        """`again`: the connection may have ended since; then try another one."""
        try:
            if self._channel is None:
                self._channel = connect(self._address, self._context, self._deadline)
            self._channel.send(request)
            answer = self._channel.receive()
            if answer is None:
                raise PeerProblem(
                    f"the other agent at {self.name} ended the connection; it may have another "
                    "certificate"
                )
        except PeerProblem:
            with suppress(PeerProblem):
                self.close()
            if again:
                return self._ask(request)
            raise
        if "error" in answer:
            raise PeerProblem(
                f"the other agent at {self.name}: {' '.join(str(answer['error'])[:1000].split())}"
            )
        return answer
