"""Errors with a sentence that a person can act on.

Every error that reaches a user is one of these classes; the command line prints its sentence and
exits with its code. Any other exception is a bug and keeps its traceback.
"""

from __future__ import annotations

import re
from pathlib import Path

_ENDS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LONG = re.compile(r"(\S{100})\S{100,}")


def _in_one_line(what: str) -> str:
    """Names from files, which may hold line ends and have any length, as a sentence can."""
    return _LONG.sub(r"\1…", _ENDS.sub("?", what))[:1000]


class SarError(Exception):
    """The base class: one clear sentence for the user, and the exit code of the command."""

    exit_code = 1


class InputError(SarError):
    """The input is bad: the sentence names the file, the line if there is one, and the remedy."""

    exit_code = 2

    def __init__(
        self,
        what: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        remedy: str = "",
    ) -> None:
        what = _in_one_line(what)
        self.what, self.file, self.line, self.remedy = what, file, line, remedy
        place = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(f"{place}{what}" + (f"; {remedy}" if remedy else ""))


class TooMany(InputError):
    """The input asks for more of something than is allowed; refused before any is created."""


class CheckFailed(SarError):
    """Routes failed a check: the sentence names the first pair, the cycle or another problem."""


class CreditLoop(CheckFailed):
    """Every pair is reached, but packets could wait for each other in a cycle of channels."""


class Unserved(SarError):
    """An engine cannot route this fabric; the sentence says why."""


class Unavailable(SarError):
    """Slurm, OpenSM or another outside party did not answer as it should; try again later."""
