"""The job source `slurmrestd`: the queue over HTTP, for an agent on a machine without Slurm.

The token (JWT) is in a file that is read again for each poll, since sites renew tokens by cron or
as a mounted secret. It goes to the configured server only, in a header.

slurmrestd serves several versions of its data (`data_parser`, before 23.11 `openapi`) under paths
of their own. They are asked from the newest down, and the first that is there is kept until it is
not there any more: what is read of jobs has two spellings in all of `VERSIONS`, and both are read.
v0.0.38 does not say which nodes are planned for a pending job.
**Weak spot:** v0.0.38 ran here (Slurm 22.05); the others are read by the forms that `squeue --json`
of 23.02 to 25.11 prints.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from sar_agent.errors import InputError, Unavailable
from sar_agent.jobs.record import PENDING
from sar_agent.jobs.source import Poll, PollFailed, kept_of_queue, retrying
from sar_agent.slurm.settings import SlurmSettings
from sar_agent.slurm.sinfo import parse_sinfo
from sar_agent.slurm.squeue_json import records_of
from sar_agent.slurm.states import RUNNING_STATES
from sar_agent.util.bounded_http import HttpRefused, fetch
from sar_agent.util.text_files import read_text

VERSIONS = tuple(f"v0.0.{n}" for n in range(44, 37, -1))
"""Those that are read, the newest first: of Slurm 25.11 to 22.05."""
MOST_BYTES = 128 * 2**20
"""The most bytes of an answer. **Weak spot:** as objects of Python it takes several times that."""
MOST_TOKEN = 65536
_TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_RENEW = "`scontrol token lifespan=SECONDS` prints one for it"
_NOT_THERE = (404, 410)
_NO_RIGHTS = (401, 403)
_T = TypeVar("_T")


class SlurmrestdSource:
    """Slurm's queue from `url`; `deadline` in seconds holds for a whole poll, retries included."""

    def __init__(
        self,
        url: str,
        token_file: Path | None,
        deadline: float = 10.0,
        states: Collection[str] = RUNNING_STATES,
    ) -> None:
        self.url, self.token_file, self.deadline = url.rstrip("/"), token_file, deadline
        self.states = frozenset(states)
        self.version = ""
        """The version that the server answered last; empty before."""

    @classmethod
    def configured(cls, settings: SlurmSettings) -> SlurmrestdSource:
        """The job source `slurmrestd`. Raises `InputError` without an address."""
        if not settings.rest_url:
            raise InputError(
                'slurm.source = "slurmrestd" needs slurm.rest_url',
                remedy='write rest_url = "http://slurmctld:6820"',
            )
        token = Path(settings.rest_token_file) if settings.rest_token_file else None
        return cls(settings.rest_url, token, settings.deadline_seconds, settings.states)

    def poll(self) -> Poll:
        """The jobs that run now. Raises `Unavailable`, in one sentence, after at most `deadline`
        seconds."""

        def read(document: dict[str, Any]) -> Poll:
            jobs = document["jobs"]
            records, bad = records_of(jobs, {*self.states, PENDING})
            return kept_of_queue(records, bad, len(jobs), f"{self.url}: {{}} jobs cannot be read")

        return self._asked("jobs", read)

    def allocated(self, hosts: Collection[str]) -> frozenset[str]:
        """Those of `hosts` that have a job. Raises `Unavailable` where that is not known of each
        of them."""

        def read(document: dict[str, Any]) -> frozenset[str]:
            found = parse_sinfo(json.dumps({"nodes": document["nodes"]}), None)
            if missing := sorted({*hosts} - found.nodes - found.allocated):
                raise Unavailable(f"{self.url} does not show {', '.join(missing[:5])}")
            return found.allocated.intersection(hosts)

        return self._asked("nodes", read)

    def _asked(self, what: str, read: Callable[[dict[str, Any]], _T]) -> _T:
        """What `read` makes of the answer, which has a list `what`."""
        end = time.monotonic() + self.deadline
        failures: list[PollFailed] = []

        def call() -> _T:
            try:
                return read(self._document(what, end))
            except PollFailed as error:
                failures.append(error)
                raise
            except InputError as error:
                raise Unavailable(f"{self.url}: {error}") from error

        try:
            return retrying(self.deadline)(call)
        except PollFailed as error:
            raise Unavailable(str(failures[0])) from error

    def _document(self, what: str, end: float) -> dict[str, Any]:
        """Raises `PollFailed` for what may pass, `Unavailable` for what a person must repair."""
        headers = self._headers()
        # A server may have been upgraded: the version that answered last, then all others.
        versions = dict.fromkeys((*filter(None, [self.version]), *VERSIONS))
        for version in versions:
            try:
                body = fetch(
                    f"{self.url}/slurm/{version}/{what}",
                    "slurmrestd",
                    deadline=end - time.monotonic(),
                    most=MOST_BYTES,
                    headers=headers,
                )
            except HttpRefused as refused:
                if refused.status in _NOT_THERE:
                    continue
                raise self._refusal(refused) from refused
            except Unavailable as error:
                raise PollFailed(str(error)) from error
            self.version = version
            return self._parsed(body, what)
        self.version = ""
        raise Unavailable(
            f"{self.url} serves none of the versions that are read, {VERSIONS[-1]} to "
            f"{VERSIONS[0]}; is it slurmrestd, with the plugin openapi/slurmctld?"
        )

    def _parsed(self, body: bytes, what: str) -> dict[str, Any]:
        try:
            document = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise PollFailed(f"{self.url} sent half an answer, or no JSON") from error
        if not isinstance(document, dict) or not isinstance(document.get(what), list):
            raise PollFailed(f"{self.url} sent JSON without a list {what!r}")
        if errors := _errors(document):
            raise PollFailed(f"{self.url}: {errors}")
        return document

    def _refusal(self, refused: HttpRefused) -> Exception:
        said = refused.said
        with suppress(ValueError, RecursionError):
            said = _errors(json.loads(refused.body)) or said
        why = f" ({said})" if said else ""
        whose = f"is the token in {self.token_file}" if self.token_file else "is a token"
        if refused.status in _NO_RIGHTS:
            return Unavailable(
                f"{self.url} accepts nothing without a token that is valid{why}; {whose} of this "
                f"cluster? {_RENEW}"
            )
        # Slurm 22.05 answers 500 for a token that slurmctld refuses, with the same words as for a
        # slurmctld that is away.
        return PollFailed(
            f"{self.url} answered HTTP {refused.status}{why}: slurmctld does not answer, or "
            f"{whose} refused?"
        )

    def _headers(self) -> dict[str, str]:
        """With the token of now. Raises `Unavailable` where the file has none that is valid."""
        if self.token_file is None:
            return {}
        try:
            text = read_text(self.token_file)
        except InputError as error:
            raise Unavailable(f"slurm.rest_token_file: {error}") from error
        token = text[:MOST_TOKEN].strip().removeprefix("SLURM_JWT=").strip()
        if not _TOKEN.fullmatch(token):
            raise Unavailable(f"{self.token_file} holds no token; {_RENEW}")
        claims = _claims(token)
        expires = claims.get("exp")
        if isinstance(expires, int | float) and expires < time.time():
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(min(expires, 2**40)))
            raise Unavailable(f"{self.token_file}: the token expired on {when}; {_RENEW}")
        user = claims.get("sun") or claims.get("username") or ""
        name = {"X-SLURM-USER-NAME": user} if re.fullmatch(r"[\w.@-]+", str(user)) else {}
        return {"X-SLURM-USER-TOKEN": token, **name}


def _claims(token: str) -> dict[str, Any]:
    """What a token says of itself; nothing of it is believed but a time and a name, which the
    server checks."""
    part = token.split(".")[1]
    try:
        found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _errors(document: Any) -> str:
    """What the answer says went wrong; empty where nothing did."""
    found = document.get("errors") if isinstance(document, dict) else None
    said = [
        str(error.get("description") or error.get("error") or error.get("source") or error)
        if isinstance(error, dict)
        else str(error)
        for error in (found if isinstance(found, list) else ())
    ]
    return "; ".join(dict.fromkeys(said))[:300]
