"""Reads the peer's state over one connection, which is opened again where it ended.

What the peer sends is bounded while it is read, and compared with its digest before it is used.
"""

from __future__ import annotations

import hashlib
import ssl
from http.client import HTTPException, HTTPSConnection

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, field_validator

from sar_agent.agent.history import Row
from sar_agent.standby.channel import DEADLINE, PeerProblem
from sar_agent.standby.snapshot import MOST_FILES, Snapshot, SnapshotFile
from sar_agent.standby.terms import Claim

LONGEST_ANSWER = 2**24
"""Bytes of an answer that is not a file."""
CONNECT_SECONDS = 3.0
_ROWS = TypeAdapter(list[Row])


class PeerSilent(PeerProblem):
    """The peer does not answer."""


class FilesChanged(PeerProblem):
    """The peer's files have changed since the last look."""


class PeerState(BaseModel):
    """What the peer says."""

    claim: Claim
    files: Snapshot = Field(max_length=MOST_FILES)

    @field_validator("files")
    @classmethod
    def _names_differ(cls, files: Snapshot) -> Snapshot:
        if len({file.name for file in files}) < len(files):
            raise ValueError("two files have one name")
        return files


class PeerClient:
    """Asks the agent at `address`. Methods raise `PeerProblem`."""

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext) -> None:
        self.name = f"{address[0]}:{address[1]}"
        self._connection = HTTPSConnection(*address, timeout=CONNECT_SECONDS, context=context)

    def look(self) -> PeerState:
        """The peer's claim and the files of its state."""
        answer = self._get("/look", LONGEST_ANSWER)
        try:
            return PeerState.model_validate_json(answer)
        except ValidationError as error:
            raise PeerProblem(
                f"{self.name}: an answer of another format ({error.errors()[0]['msg']}); both "
                "agents must have the same version"
            ) from error

    def contents(self, file: SnapshotFile) -> bytes:
        """The contents of a file of the last look. Raises `FilesChanged`, too."""
        data = self._get(f"/files/{file.name}", file.size)
        if hashlib.sha256(data).hexdigest() != file.digest:
            raise FilesChanged(f"{self.name}: {file.name} does not have its digest")
        return data

    def rows(self, after: float) -> list[Row]:
        """The oldest of the peer's decisions after this time (Unix seconds)."""
        answer = self._get(f"/rows?after={after!r}", LONGEST_ANSWER)
        try:
            return _ROWS.validate_json(answer)
        except ValidationError as error:
            raise PeerProblem(f"{self.name}: its history has another format") from error

    def close(self) -> None:
        """End the connection; the next look opens another one."""
        self._connection.close()

    def _get(self, path: str, most: int) -> bytes:
        """The answer, or its first bytes where it has more than `most`."""
        connection = self._connection
        may_have_ended = connection.sock is not None
        try:
            connection.request("GET", path)
            connection.sock.settimeout(DEADLINE)
            answer = connection.getresponse()
            data = answer.read(most + 1)
            if not answer.isclosed():  # it has more
                self.close()
        except (OSError, HTTPException) as error:
            self.close()
            if may_have_ended:
                return self._get(path, most)
            raise PeerSilent(
                f"the other agent does not answer at {self.name} ({_why(error)})"
            ) from error
        if answer.status == 404:
            raise FilesChanged(f"{self.name}: {path} is gone")
        if answer.status != 200:
            words = " ".join(data[:1000].decode(errors="replace").split())
            raise PeerProblem(f"the other agent at {self.name}: {words}")
        return data


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLEOFError):
        return "it ended the connection"
    if isinstance(error, ssl.SSLError):
        return "it is no agent with our certificate"
    if isinstance(error, HTTPException):
        return "it ended the connection; both agents must have the same version"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
