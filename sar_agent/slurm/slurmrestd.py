"""The job source `slurmrestd`: its `/jobs`, over its Unix socket.

The JSON is that of `squeue --json`, twenty times the size of squeue's pipe format: the source is
for sites without squeue beside the agent; it is not faster.

The versions that are served depend on Slurm's release (22.05: v0.0.36 to 38). The newest that
answers is used, and searched again when it is gone.
"""

from __future__ import annotations

import getpass
import http.client
import socket
import time
from collections.abc import Collection
from pathlib import Path

from sar_agent.errors import InputError, Unavailable
from sar_agent.jobs.source import Poll, PollFailed, retrying
from sar_agent.slurm.settings import SlurmSettings
from sar_agent.slurm.squeue_json import poll_of_json
from sar_agent.slurm.states import RUNNING_STATES

VERSIONS = tuple(f"v0.0.{number}" for number in range(46, 35, -1))
LONGEST = 256 * 2**20
"""The most bytes of an answer; 5,000 jobs are 20 MB."""


class _UnixConnection(http.client.HTTPConnection):
    """An HTTP connection over a Unix socket."""

    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class SlurmrestdSource:
    """Slurm's queue, read from the slurmrestd that listens on `path`.

    Without a `jwt_file` slurmrestd authenticates the agent by the socket (`rest_auth/local`: both
    run as the same user). With one, the file is read at each poll, since tokens expire, and sent as
    a token of `user` (the agent's own user, if empty). `deadline` in seconds holds for a whole
    poll; `states` are as in `SqueueSource`.
    """

    def __init__(
        self,
        path: Path,
        user: str = "",
        jwt_file: Path | None = None,
        deadline: float = 10.0,
        states: Collection[str] = RUNNING_STATES,
    ) -> None:
        self.path, self.user, self.jwt_file = path, user, jwt_file
        self.deadline, self.states = deadline, frozenset(states)
        self._version = ""

    @classmethod
    def configured(cls, settings: SlurmSettings) -> SlurmrestdSource:
        """The job source `slurmrestd`."""
        return cls(
            settings.slurmrestd_socket,
            settings.slurmrestd_user,
            Path(settings.slurmrestd_jwt_file) if settings.slurmrestd_jwt_file else None,
            settings.deadline_seconds,
            settings.states,
        )

    def poll(self) -> Poll:
        """The jobs that run now. Raises `Unavailable`, in one sentence, within the deadline."""
        end = time.monotonic() + self.deadline
        try:
            text = retrying(self.deadline)(lambda: self._jobs(end))
        except PollFailed as error:
            raise Unavailable(str(error)) from error
        try:
            return poll_of_json(text, None, self.states)
        except InputError as error:
            raise Unavailable(f"slurmrestd at {self.path}: {error}") from error

    def _jobs(self, end: float) -> str:
        for version in (self._version,) if self._version else VERSIONS:
            status, body = self._get(f"/slurm/{version}/jobs", end)
            if status == 200:
                self._version = version
                return body.decode("utf-8", errors="replace")
            if status in (401, 403, 511):
                raise Unavailable(
                    f"slurmrestd at {self.path} does not authenticate the agent (HTTP {status}); "
                    "give slurm.slurmrestd_jwt_file, or run the agent as slurmrestd's user"
                )
            if status not in (404, 501):
                message = " ".join(body[:300].decode("utf-8", errors="replace").split())
                raise PollFailed(f"slurmrestd at {self.path} answered HTTP {status}: {message}")
        self._version = ""
        raise PollFailed(
            f"slurmrestd at {self.path} serves no /jobs of {VERSIONS[-1]} to {VERSIONS[0]}"
        )

    def _get(self, target: str, end: float) -> tuple[int, bytes]:
        late = f"slurmrestd at {self.path} gave no answer within {self.deadline:g} s"
        left = end - time.monotonic()
        if left <= 0:
            raise PollFailed(late)
        connection = _UnixConnection(self.path, left)
        try:
            connection.request("GET", target, headers=self._headers())
            answer = connection.getresponse()
            body = self._body(answer, end)
        except TimeoutError as error:
            raise PollFailed(late) from error
        except (OSError, http.client.HTTPException) as error:
            what = error.strerror if isinstance(error, OSError) and error.strerror else repr(error)
            raise PollFailed(f"slurmrestd at {self.path} does not answer ({what})") from error
        finally:
            connection.close()
        return answer.status, body

    def _body(self, answer: http.client.HTTPResponse, end: float) -> bytes:
        """The whole body. Raises `Unavailable` past `LONGEST` bytes, and `TimeoutError` after
        `end`, by `time.monotonic`: the socket's own timeout starts again with each byte."""
        body = bytearray()
        while piece := answer.read1(65536):
            body += piece
            if len(body) > LONGEST:
                raise Unavailable(
                    f"slurmrestd at {self.path} answered with more than {LONGEST >> 20} MiB; see "
                    "what /jobs gives"
                )
            if time.monotonic() > end:
                raise TimeoutError
        return bytes(body)

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        if self.jwt_file:
            try:
                token = self.jwt_file.read_text().strip()
            except (OSError, UnicodeDecodeError) as error:
                raise Unavailable(f"{self.jwt_file}: the JWT cannot be read ({error})") from error
            # `scontrol token` prints SLURM_JWT=…
            headers["X-SLURM-USER-TOKEN"] = token.removeprefix("SLURM_JWT=")
            headers["X-SLURM-USER-NAME"] = self.user or getpass.getuser()
        return headers
