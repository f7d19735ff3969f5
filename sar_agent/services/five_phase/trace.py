"""The steps of the coordinator, one JSON object a line, for a replay against the model.

`libs/migrate/trace.c` writes those of the subscribers, libs/migrate/PROTOCOL.md describes all
events, and sar_lab/five_phase/model_replay.py reads them. A line is written once the step is on
disk, before any other party learns of it.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sar_agent.services.five_phase.messages import (
    Acknowledge,
    Message,
    Phase,
    Subscribe,
    TablesInstalled,
    Unsubscribe,
)
from sar_agent.services.five_phase.protocol import CoordinatorState

log = logging.getLogger(__name__)
Event = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class InstalledFiles:
    """What the driver found when no table was being sent, as generations; 0 is another engine's."""

    file: int
    """The generation in `routes.sar`."""
    next: bool
    """Whether there is a `routes.next`."""
    in_force: int


class Trace:
    """Appends to `path`; None writes nothing. An error is logged once and ends the trace."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def started(self, saved: CoordinatorState) -> None:
        """A coordinator has started with `saved`; the one before it may have been killed after
        saving a step and before tracing it."""
        fields = {"phase": saved.phase.value, "why": saved.why, "members": sorted(saved.members)}
        self._write(saved, [("start", fields)])

    def step(self, before: CoordinatorState, message: Message, after: CoordinatorState) -> None:
        """A step that led from `before` to another state."""
        self._write(after, events_of(before, message, after))

    def files(self, state: CoordinatorState, files: InstalledFiles) -> None:
        """What the driver found. New tables are those of the run, of its first stages, or repairs
        of them."""

        def age(generation: int) -> str:
            return "new" if generation >= state.generation else "old"

        in_force = age(files.in_force) if files.in_force else "other"
        fields = {"file": age(files.file), "next": files.next, "in_force": in_force}
        self._write(state, [("files", fields)])

    def _write(self, state: CoordinatorState, events: Iterator[Event] | list[Event]) -> None:
        if self.path is None:
            return
        head = {"at": time.time(), "party": "coordinator", "update": state.update}
        text = "".join(json.dumps(head | {"event": name} | rest) + "\n" for name, rest in events)
        try:
            with self.path.open("a") as file:
                file.write(text)
        except OSError as error:
            log.warning("%s: %s; the trace ends here", self.path, error.strerror)
            self.path = None


def events_of(
    before: CoordinatorState, message: Message, after: CoordinatorState
) -> Iterator[Event]:
    """The step as events of the model; a step that the model does not have, such as a repeated
    notice, gives no event."""
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
        # Members whose lease has ended, for which the run did not wait: the model drops them.
        for name in sorted(n for n, member in before.members.items() if not member.acked):
            yield "drop", {"subscriber": name}
        yield "install", {}
    elif before.phase is Phase.UNPATH:
        yield "repath", {}
    if after.phase is Phase.IDLE:
        yield "idle", {}
