"""Checks with spin whether the verified model could have produced the events of a real run.

A trace consists of JSON lines of the agent and of subscribers (libs/migrate/PROTOCOL.md), in
order of time. Each line that is an event of the model becomes a number. With TRACE, a visible
transition of `five_phase.pml` is possible only when its number is next, so there is no second
description of the rules that could differ from the first. Invisible transitions (a message or
tables in transit) remain free. Whenever no tables are in transit, the trace has the contents of
`routes.sar` and of the switches (`files`), which must be those of the model.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sar_agent.errors import InputError, Unavailable

_PHASES = ("idle", "unpath", "install", "repath")
# The numbers of `#define E_…` and `C_…` in five_phase.pml, by party and event.
_SUBSCRIBER = {"start": 1, "subscribe": 2, "answer": 3, "fence": 15, "unsubscribe": 16}
_COORDINATOR = {
    "start": 20,
    "run": 21,
    "subscribe": 22,
    "drop": 28,
    "unsubscribe": 29,
    "install": 30,
    "repath": 33,
    "idle": 34,
    "files": 35,
}
_AWAY_OR_BACK = {("subscriber", "notice"): 7, ("subscriber", "ack"): 13, ("coordinator", "ack"): 26}
_BY_OFFSET = {"move": 9, "moved": 11}
_LEADS_TO = {
    "run": "unpath",
    "install": "install",
    "installed": "repath",
    "repath": "repath",
    "idle": "idle",
}
_STARTED, _INSTALLED, _FAILED, _REPATH = 20, 31, 32, 33
_ENDS = {_INSTALLED: 5, _FAILED: 0}
"""The model's files after these events, for traces without `files`."""
_WITHOUT_UPDATE = {1}


@dataclass(frozen=True)
class ReplayResult:
    """`accepted` of the `events` of the trace, from the first on, are possible in the model."""

    accepted: int
    events: int
    refused: Mapping[str, Any] | None
    """The first impossible line; None where all are possible."""


def read_trace(texts: Mapping[str, str]) -> list[dict[str, Any]]:
    """The lines of all files (name → text) in order of time. Raises `InputError`."""
    lines: list[dict[str, Any]] = []
    for file, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            try:
                event = json.loads(line)
                lines.append(event | {"at": float(event["at"])})
            except (ValueError, KeyError, TypeError) as error:
                what = f"this is not a line of a trace: {line[:80]}"
                raise InputError(what, file=file, line=number) from error
    return sorted(lines, key=lambda event: event["at"])


def _as_on_disk(lines: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Adds the events that a killed coordinator had saved to disk, but not yet written to the
    trace. No other party had seen them, so they may as well have happened just before the next
    start."""
    phase, members = "idle", set[str]()
    for line in lines:
        if line["party"] == "coordinator":
            event, name = line["event"], line.get("subscriber", "")
            if event == "start" and "phase" in line:
                for missing in _missing(phase, members, line):
                    yield line | missing
                phase = "repath" if line["phase"] == "unpath" else line["phase"]
                members = set(line["members"])
            phase = _LEADS_TO.get(event, phase)
            if event == "subscribe":
                members.add(name)
            elif event in ("drop", "unsubscribe"):
                members.discard(name)
        yield line


def _missing(phase: str, members: set[str], start: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name in sorted(members - set(start["members"])):
        yield {"event": "drop", "subscriber": name}
    for name in sorted(set(start["members"]) - members):
        yield {"event": "subscribe", "subscriber": name, "phase": phase}
    if start["phase"] == phase:
        return
    events = [event for event, to in _LEADS_TO.items() if to == start["phase"]]
    event = events[0] if phase == "install" else events[-1]
    yield {"event": event, "ok": not start["why"]}


def _code(line: Mapping[str, Any]) -> int | None:
    party, event = str(line["party"]), str(line["event"])
    phase = str(line.get("phase", ""))
    if (party, event) in _AWAY_OR_BACK:
        return _AWAY_OR_BACK[party, event] + (phase == "repath")
    if party == "subscriber" and event in _BY_OFFSET:
        return _BY_OFFSET[event] + int(line["offset"])
    if event == "installed":
        return _INSTALLED if line.get("ok", True) else _FAILED
    code = (_SUBSCRIBER if party == "subscriber" else _COORDINATOR).get(event)
    if code is not None and event in ("answer", "subscribe") and phase in _PHASES:
        return code + _PHASES.index(phase)
    return code


def _tables_found(line: Mapping[str, Any]) -> int | None:
    """FOUND of the model: the contents of `routes.sar`, `routes.next` and the switches."""
    if line.get("in_force") not in ("new", "old"):
        return None
    new = [line.get("file") == "new", line.get("next") is True, line.get("in_force") == "new"]
    return sum(bit << n for n, bit in enumerate(new))


def _numbers(lines: list[dict[str, Any]]) -> tuple[list[tuple[int, dict[str, Any]]], int, int]:
    """Events with their numbers, the number of subscribers, and the number of updates. Updates are
    counted from the first one whose begin is in the trace; earlier ones count as 0."""
    lines = list(_as_on_disk(lines))
    names: dict[str, int] = {}
    begun = sorted({line["update"] for line in lines if line["event"] == "run"})
    events = []
    back = set[int]()  # updates whose return another line has already begun in the model
    files: int | None = None  # the last known contents
    for line in lines:
        code = _code(line)
        update = line.get("update", 0)
        if code is None or line.get("counts") is False or (code == _REPATH and update in back):
            continue  # also the end of a process, and an answer that came too late
        if code in (_STARTED, _INSTALLED, _FAILED):
            back.add(update)
        name = line["id"] if line["party"] == "subscriber" else line.get("subscriber")
        party = names.setdefault(name, len(names)) if name else 0
        if line["event"] in ("files", "install", "start"):
            files = _tables_found(line)
        if line["event"] == "files":
            if files is None:
                continue  # tables of another engine, which the model does not have
            party = files
        elif code in (_INSTALLED, _FAILED):
            party = _ENDS[code] if files is None else files
        number = 0 if code in _WITHOUT_UPDATE else bisect_right(begun, update)
        if line["event"] == "notice" and not number:
            continue  # a notice of an update that had ended
        events.append((code * 65536 + party * 256 + number, line))
    return events, max(1, len(names)), max(1, len(begun))


def replay(lines: list[dict[str, Any]], model: Path) -> ReplayResult:
    """Compare a trace with the model in the folder `model` (`five_phase.pml` and `check.sh`).

    Raises `Unavailable` where spin, gcc or the model is missing, and `InputError` for a trace with
    more than 200 subscribers or updates.
    """
    events, subscribers, updates = _numbers(lines)
    if subscribers > 200 or updates > 200:
        raise InputError(
            f"{subscribers} subscribers in {updates} updates are too many for a replay",
            remedy="cut the trace to 200 of either",
        )

    def possible(count: int) -> bool:
        return not count or _accepts(
            model, [code for code, _ in events[:count]], subscribers, updates
        )

    low, high = 0, len(events)
    if possible(high):
        return ReplayResult(high, high, None)
    while high - low > 1:  # the first `low` events are possible, the first `high` are not
        middle = (low + high) // 2
        low, high = (middle, high) if possible(middle) else (low, middle)
    return ReplayResult(low, len(events), events[low][1])


def _accepts(model: Path, codes: list[int], subscribers: int, updates: int) -> bool:
    check = model / "check.sh"
    numbers = ", ".join(map(str, [*codes, -1]))
    with tempfile.TemporaryDirectory() as folder:
        header = Path(folder) / "trace.h"
        header.write_text(f"static const int trace[] = {{{numbers}}};\n")
        try:
            run = subprocess.run(
                [check, "trace", header, str(subscribers), str(updates), str(len(codes))],
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as error:
            raise Unavailable(
                f"{check}: {error.strerror}; name libs/migrate/model of the source tree"
            ) from error
    reached = "assertion violated (place<" in run.stdout
    if run.returncode not in (0, 1) or (run.returncode == 1 and not reached):
        raise Unavailable(f"spin cannot replay this: {(run.stdout + run.stderr)[-300:]}")
    return reached
