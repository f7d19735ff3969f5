"""When things are due that must not happen too often, or that have to happen in time, by cause."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic


class Pace:
    """`clock` returns seconds and must not jump."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self._until: dict[str, float] = {}

    def put_off(self, cause: str, seconds: float, since: float | None = None) -> None:
        """`cause` is due in `seconds` from now on, or from `since`, by the clock."""
        self._until[cause] = (self.clock() if since is None else since) + seconds

    def __contains__(self, cause: str) -> bool:
        """Whether `cause` was put off and is not forgotten, due or not."""
        return cause in self._until

    def forget(self, *causes: str) -> None:
        """They were never put off."""
        for cause in causes:
            self._until.pop(cause, None)

    def left(self, cause: str) -> float:
        """Seconds until `cause` is due; 0 where it is, or was never put off."""
        return max(0.0, self._until.get(cause, 0.0) - self.clock()) if cause in self else 0.0

    def due(self, cause: str) -> bool:
        """Whether it is time."""
        return not self.left(cause)
