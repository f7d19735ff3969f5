"""Could the model have done what a real run did? Asked of spin, on the model that it explored.

A trace is JSON lines of the agent and of subscribers (libsar_migrate/PROTOCOL.md), in order of
their time. Each line that is an event of the model becomes a number; with TRACE, a transition of
`five_phase.pml` that a trace would show is possible only when its number is next. So there is no
second description of the rules that could differ from the first. What no trace shows (a message on
its way, tables on theirs) stays free. What `routes.sar` and the switches have is shown whenever no
table is on its way (`files`), and must be what the model has then.
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
"""What the model finds then; for traces without `files`."""
_WITHOUT_UPDATE = {1}


@dataclass(frozen=True)
class ReplayResult:
    """`accepted`: events of the trace, from the first, that the model can do, of `events`."""

    accepted: int
    events: int
    refused: Mapping[str, Any] | None
    """The first line that it cannot."""


def read_trace(texts: Mapping[str, str]) -> list[dict[str, Any]]:
    """The lines of all files, each by its name, in order of time. Raises `InputError`."""
    lines: list[dict[str, Any]] = []
    for file, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            try:
                one = json.loads(line)
                lines.append(one | {"at": float(one["at"])})
            except (ValueError, KeyError, TypeError) as error:
                what = f"this is no line of a trace: {line[:80]}"
                raise InputError(what, file=file, line=number) from error
    return sorted(lines, key=lambda one: one["at"])


def _as_on_disk(lines: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """With what a coordinator that was killed had saved, and not come to write here. Nobody had
    heard of it, so it may as well have been just before the next start."""
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
    """FOUND of the model: what `routes.sar`, `routes.next` and the switches have."""
    if line.get("in_force") not in ("new", "old"):
        return None
    new = [line.get("file") == "new", line.get("next") is True, line.get("in_force") == "new"]
    return sum(bit << n for n, bit in enumerate(new))


def _numbers(lines: list[dict[str, Any]]) -> tuple[list[tuple[int, dict[str, Any]]], int, int]:
    """Events with their numbers; how many subscribers and updates there are. Updates are counted
    from the first that the trace saw begin; what was before is none."""
    lines = list(_as_on_disk(lines))
    names: dict[str, int] = {}
    begun = sorted({one["update"] for one in lines if one["event"] == "run"})
    events = []
    back = set[int]()  # updates whose way back the model has begun with another line
    files: int | None = None  # as found last
    for line in lines:
        code = _code(line)
        update = line.get("update", 0)
        if code is None or line.get("counts") is False or (code == _REPATH and update in back):
            continue  # also: the end of a process; an answer that came too late
        if code in (_STARTED, _INSTALLED, _FAILED):
            back.add(update)
        name = line["id"] if line["party"] == "subscriber" else line.get("subscriber")
        who = names.setdefault(name, len(names)) if name else 0
        if line["event"] in ("files", "install", "start"):
            files = _tables_found(line)
        if line["event"] == "files":
            if files is None:
                continue  # another engine's tables, of which the model knows nothing
            who = files
        elif code in (_INSTALLED, _FAILED):
            who = _ENDS[code] if files is None else files
        place = 0 if code in _WITHOUT_UPDATE else bisect_right(begun, update)
        if line["event"] == "notice" and not place:
            continue  # of an update that was over
        events.append((code * 65536 + who * 256 + place, line))
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
    while high - low > 1:  # the model can do `low` of them, and not `high`
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
                f"{check}: {error.strerror}; name libsar_migrate/model of the source tree"
            ) from error
    reached = "assertion violated (place<" in run.stdout
    if run.returncode not in (0, 1) or (run.returncode == 1 and not reached):
        raise Unavailable(f"spin cannot replay this: {(run.stdout + run.stderr)[-300:]}")
    return reached
