"""How much of the processors was idle during a run, and whether the run counts.

Without this rule an emulator lies: with 0 to 1 % idle, the ring of one mix read 1.148 times its
time, with 37 % idle 1.001. Mininet-HiFi asked for .35.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

LEAST = 0.25
"""Idle share below which a run does not count."""
HALVINGS = 3
"""How often the rate of all cables is halved before the machine is called busy."""


class Ticks(NamedTuple):
    """The processors' clock ticks since boot."""

    idle: int
    total: int


def read_ticks(text: str | None = None) -> Ticks:
    """Of /proc/stat: idle are `idle` and `iowait`; guests are counted in `user` already, and time
    that a hypervisor took (`steal`) was not idle."""
    first = (Path("/proc/stat").read_text() if text is None else text).splitlines()[0].split()
    ticks = [int(word) for word in first[1:9]]
    return Ticks(ticks[3] + ticks[4], sum(ticks))


def idle_share(before: Ticks, after: Ticks) -> float:
    """0 … 1; 0 where no tick has passed: what is not known does not count."""
    total = after.total - before.total
    return (after.idle - before.idle) / total if total > 0 else 0.0


def counts(share: float) -> bool:
    """Whether a run with this idle share counts."""
    return share >= LEAST
