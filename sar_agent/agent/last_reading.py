"""A last good reading of what does not always answer, and since when it could not be read again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from sar_agent.errors import SarError
from sar_agent.util.unexpected_errors import UnexpectedErrors

_T = TypeVar("_T")


@dataclass
class LastReading(Generic[_T]):
    """A last good reading: `at` in Unix seconds, `since` by `time.monotonic`; `problem` says why it
    could not be read again."""

    value: _T | None = None
    at: float = 0.0
    since: float = 0.0
    problem: str = ""

    def read(
        self, source: Callable[[], _T], where: str, unexpected: UnexpectedErrors | None
    ) -> bool:
        """Read again; False, with the old value kept, where that fails. An unforeseen error is
        reported to `unexpected`, if there is one, as an error at `where`: the old value serves for
        a repair. Without, it is raised."""
        try:
            self.value = source()
        except SarError as error:
            self.problem = str(error)
            return False
        except Exception as error:
            if unexpected is None:
                raise
            self.problem = unexpected.caught(where, error)
            return False
        self.at, self.since, self.problem = time.time(), time.monotonic(), ""
        return True

    def stale(self) -> str:
        """`problem`, and how old the value used instead is; empty where it is fresh, and before the
        first value, since then the pass fails with `problem`."""
        if not (self.problem and self.at):
            return ""
        age = time.monotonic() - self.since
        return f"{self.problem}; going on with what was read {age:.0f} s ago"
