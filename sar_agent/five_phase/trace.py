"""What the coordinator says and does, a JSON object a line, for a replay against the model.

The other half is `libsar_migrate/trace.c`, its subscribers'; libsar_migrate/PROTOCOL.md has all the
events, sar_lab/five_phase/model_replay.py reads them. A line is written once the step is on the
disk and before anybody hears of it.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sar_agent.five_phase.messages import (
    Acknowledge,
    Message,
    Phase,
    Subscribe,
    TablesInstalled,
    Unsubscribe,
)
from sar_agent.five_phase.protocol import CoordinatorState

log = logging.getLogger(__name__)
Event = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class InstalledFiles:
    """What the driver found when no table was on its way. Generations; 0 is none of ours."""

    file: int
    """In `routes.sar`."""
    next: bool
    """Whether there is a `routes.next`."""
    in_force: int


class Trace:
    """Appends to `path`; None writes nothing. What cannot be written is said once, and left out."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def started(self, saved: CoordinatorState) -> None:
        """A coordinator that found `saved`: its predecessor may have been killed between that and
        the line that tells of it."""
        found = {"phase": saved.phase.value, "why": saved.why, "members": sorted(saved.members)}
        self._write(saved, [("start", found)])

    def step(self, before: CoordinatorState, message: Message, after: CoordinatorState) -> None:
        """`after` is another state than `before`."""
        self._write(after, events(before, message, after))

    def files(self, state: CoordinatorState, files: InstalledFiles) -> None:
        """New are the tables of the run; or of its first stages, or what repaired them since."""

        def age(generation: int) -> str:
            return "new" if generation >= state.generation else "old"

        in_force = age(files.in_force) if files.in_force else "other"
        found = {"file": age(files.file), "next": files.next, "in_force": in_force}
        self._write(state, [("files", found)])

    def _write(self, state: CoordinatorState, found: Iterator[Event] | list[Event]) -> None:
        if self.path is None:
            return
        head = {"at": time.time(), "party": "coordinator", "update": state.update}
        text = "".join(json.dumps(head | {"event": name} | more) + "\n" for name, more in found)
        try:
            with self.path.open("a") as file:
                file.write(text)
        except OSError as error:
            log.warning("%s: %s; no trace is written from here on", self.path, error.strerror)
            self.path = None


def events(before: CoordinatorState, message: Message, after: CoordinatorState) -> Iterator[Event]:
    """The step in the model's words; what it has no word for, as a repeated notice, is none."""
    match message:
        case Subscribe():
            yield "subscribe", {"subscriber": message.subscriber, "phase": after.phase.value}
        case Acknowledge():
            yield "ack", {"subscriber": message.subscriber, "phase": message.phase.value}
        case Unsubscribe():
            yield "unsubscribe", {"subscriber": message.subscriber}
        case TablesInstalled():
            yield "installed", {"ok": message.moved}
    if not isinstance(message, Unsubscribe):
        for gone in sorted(before.members.keys() - after.members.keys()):
            yield "drop", {"subscriber": gone}
    if after.phase is before.phase:
        return
    if after.phase is Phase.UNPATH:
        yield "run", {}
    elif after.phase is Phase.INSTALL:
        # Whose lease is over, and who is not waited for: to the model it is no member any more.
        for name in sorted(n for n, one in before.members.items() if not one.acked):
            yield "drop", {"subscriber": name}
        yield "install", {}
    elif before.phase is Phase.UNPATH:
        yield "repath", {}
    if after.phase is Phase.IDLE:
        yield "idle", {}
