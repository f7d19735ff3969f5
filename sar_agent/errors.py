"""What can go wrong in words a person can act on.

Every error that reaches a user is one of these; the command line prints its one sentence and
exits with its code. Anything else is a bug and keeps its traceback.
"""

from __future__ import annotations

from pathlib import Path


class SarError(Exception):
    """Base: one clear sentence for the user and the exit code that goes with it."""

    exit_code = 1


class InputError(SarError):
    """Bad input: names the file, the line where there is one, and the remedy."""

    exit_code = 2

    def __init__(
        self,
        what: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        remedy: str = "",
    ) -> None:
        self.what, self.file, self.line, self.remedy = what, file, line, remedy
        place = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(f"{place}{what}" + (f"; {remedy}" if remedy else ""))


class TooMany(InputError):
    """More of something than there may be: refused before it is made."""


class CheckFailed(SarError):
    """Routes failed a check: the message names the first pair or the cycle."""


class CreditLoop(CheckFailed):
    """Every pair is reached, but packets could wait for each other in a circle."""


class Unserved(SarError):
    """An engine cannot serve this fabric; the sentence says what stands in its way."""


class Unavailable(SarError):
    """Slurm, OpenSM or another outside party did not answer as it should; try again later."""
