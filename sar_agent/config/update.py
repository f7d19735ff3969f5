"""`[update]`: how new routes replace old ones while jobs run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field, field_validator

from sar_agent.config.types import Section

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WINDOW = re.compile(r"(?:(?P<days>[a-z,-]+) )?(\d\d):(\d\d)-(\d\d):(\d\d)")


@dataclass(frozen=True)
class Window:
    """A time of day, in minutes of local time, on the weekdays `days` (0 is Monday) on which it
    opens. It closes on the next day if `end` is not after `start`."""

    days: frozenset[int]
    start: int
    end: int

    @classmethod
    def of(cls, text: str) -> Window:
        """Parses `02:00-04:00`, `sat,sun 22:00-06:00` or `mon-fri 01:00-05:00`. Raises
        `ValueError`."""
        match = _WINDOW.fullmatch(text)
        if not match:
            raise ValueError(
                f"{text!r} is not a window; write 02:00-04:00, or sat,sun 22:00-06:00 with days"
            )
        start, end = (60 * int(h) + int(m) for h, m in (match.group(2, 3), match.group(4, 5)))
        if max(start, end) > 24 * 60 or int(match[3]) > 59 or int(match[5]) > 59 or start == end:
            raise ValueError(f"{text!r}: give two different times from 00:00 to 24:00")
        return cls(_days(match["days"], text), start, end)

    def open_at(self, when: datetime) -> bool:
        """Whether the window is open at local time `when`."""
        minute = 60 * when.hour + when.minute
        if self.start < self.end:
            return when.weekday() in self.days and self.start <= minute < self.end
        if minute >= self.start:
            return when.weekday() in self.days
        return minute < self.end and (when - timedelta(days=1)).weekday() in self.days


def _days(text: str | None, window: str) -> frozenset[int]:
    if text is None:
        return frozenset(range(7))
    days: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first not in _DAYS or (last or first) not in _DAYS:
            raise ValueError(f"{window!r}: days are {', '.join(_DAYS)}, such as mon-fri or sat,sun")
        a, b = _DAYS.index(first), _DAYS.index(last or first)
        days |= {(a + n) % 7 for n in range((b - a) % 7 + 1)}
    return frozenset(days)


class UpdateConfig(Section, frozen=True):
    """Updates: how new routes replace old ones while jobs run (see docs/safety.md)."""

    mode: Literal["fast", "five-phase", "window"] = Field(
        default="fast",
        description="method: fast installs switch by switch what is proved to be safe; five-phase "
        "does so, too, and moves the connections of subscribed jobs to LID offset 1 meanwhile, "
        "which keeps their packets in order and requires lmc 1 or more in opensm.conf (set it "
        "while no job runs: all LIDs change); window waits until no multi-switch job runs or a "
        "window is open",
    )
    windows: list[str] = Field(
        default=[],
        description="times, for mode window, at which an install may disturb jobs, in local time: "
        '["02:00-04:00", "sat,sun 20:00-06:00"]',
    )
    deadline_seconds: Annotated[float, Field(gt=0, le=300)] = Field(
        default=15.0,
        description="time for all subscribers to leave LID offset 0, else nothing is installed",
    )
    lease_seconds: Annotated[float, Field(ge=1, le=600)] = Field(
        default=30.0,
        description="time after which a subscriber that has no contact with the agent leaves LID "
        "offset 0 by itself",
    )
    lapsed_leases: Literal["wait", "drop"] = Field(
        default="wait",
        description="treatment of subscribers whose lease has ended: wait waits for them until the "
        "deadline, drop assumes that they have moved to LID offset 1",
    )
    max_changed_entries: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description="largest number of forwarding-table entries that may change under running "
        "jobs, compared with the tables in force. It does not limit the first install, repairs and "
        "returns from another engine. 0 is no limit",
    )
    trace: str = Field(
        default="",
        description="file to which a five-phase update appends the coordinator's steps, such as "
        "/var/lib/sar-agent/trace.jsonl, to replay them against the model "
        '(libs/migrate/PROTOCOL.md). "" writes none',
    )

    @field_validator("windows")
    @classmethod
    def _are_windows(cls, value: list[str]) -> list[str]:
        for text in value:
            Window.of(text)
        return value

    def in_window(self, when: datetime) -> bool:
        """Whether a window is open at local time `when`."""
        return any(Window.of(text).open_at(when) for text in self.windows)
