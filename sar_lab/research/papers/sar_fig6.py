"""SAR, Fig. 6: the sequence of a five-phase update, as real parties went through it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sar_agent.fabric.spec import load_fabric
from sar_lab.research.papers.claims import Claim, order
from sar_lab.research.papers.outcome import Axes, Figure, Outcome, ResultTable
from sar_lab.research.papers.pictures import legend
from sar_lab.research.papers.published import quotes
from sar_lab.research.recorded_update import TESTBED, RecordedUpdate, path_channels, recorded_update

SAID = quotes("sar-fig6")
SENDER, RECEIVER = 1, 3
"""Terminals of the first job: one at each switch."""
_COLOURS = {0: "#4477aa", 1: "#ee6677"}
"""Offset → colour: baseLIDs, highLIDs."""


def ranks(update: RecordedUpdate) -> list[str]:
    """The ids of the ranks, in the order in which they were told."""
    seen = [str(e["id"]) for e in update.events if e["party"] == "subscriber"]
    return list(dict.fromkeys(seen))


def sar_fig6(seeds: Sequence[int]) -> Outcome:
    """Judges the record, which a rerun reads again; `tests/live/test_five_phase.py` tests new
    runs."""
    update = recorded_update()
    rows = [[what, f"{1e3 * at:.1f}"] for what, at in _steps(update)]
    ways = [
        [f"{when}, {name}", _ways(update, when, offset)]
        for offset, name in enumerate(("baseLIDs", "highLIDs"))
        for when in ("before", "after")
    ]
    return Outcome(
        _claims(update),
        tables=[
            ResultTable(["event", "ms after the update began"], rows),
            ResultTable(["tables", "cables of the two hosts' paths, both directions"], ways),
        ],
        draw=lambda figure: _draw(figure, update),
    )


def _claims(update: RecordedUpdate) -> list[Claim]:
    begun, ended = update.changing()
    times, some = update.times, ranks(update)
    away = times("subscriber", "moved", offset=1)
    back = times("subscriber", "move", offset=0)
    install, installed = times("coordinator", "install")[0], times("coordinator", "installed")[0]
    acks = {phase: times("coordinator", "ack", phase=phase) for phase in ("unpath", "repath")}
    before, after = (update.tables[when] for when in ("before", "after"))
    first_move = times("subscriber", "move", offset=1)
    notices = [times("subscriber", "notice", phase="unpath", id=one)[0] for one in some]
    return [
        order("1: each rank is told before it moves, and before any table changes",
              max(notices) < begun and all(n <= m for n, m in zip(notices, first_move,
              strict=True)), said=SAID["told"]),
        order("2: all ranks have moved to highLIDs, and said so, before tables change",
              len(away) == len(acks["unpath"]) == update.ranks
              and max(away) <= max(acks["unpath"]) <= install and max(away) < begun,
              said=SAID["moved"]),
        order("3: tables of baseLIDs change", before[0] != after[0], said=SAID["base"]),
        order("3: tables of highLIDs do not", before[1] == after[1], said=SAID["high"]),
        order("4: no rank moves back before all tables are confirmed",
              len(back) == update.ranks and ended <= installed <= min(back), said=SAID["back"]),
        order("5: the update is over when all ranks have said that they are back",
              len(acks["repath"]) == update.ranks
              and max(acks["repath"]) <= times("coordinator", "idle")[0], said=SAID["over"]),
    ]  # fmt: skip


def _steps(update: RecordedUpdate) -> list[tuple[str, float]]:
    """The last of each kind, in order of time."""
    times = update.times
    begun, ended = update.changing()
    return [
        ("the agent announces the update", times("coordinator", "run")[0]),
        ("the last rank is told (unpath)", times("subscriber", "notice", phase="unpath")[-1]),
        ("the last rank is on highLIDs", times("subscriber", "moved", offset=1)[-1]),
        ("the agent has all acknowledgements", times("coordinator", "ack", phase="unpath")[-1]),
        ("new tables are sent", times("coordinator", "install")[0]),
        ("tables were first seen to change", begun),
        ("all tables were seen confirmed", ended),
        ("the agent knows it", times("coordinator", "installed")[0]),
        ("the last rank is told (repath)", times("subscriber", "notice", phase="repath")[-1]),
        ("the last rank is on baseLIDs", times("subscriber", "moved", offset=0)[-1]),
        ("the update is over", times("coordinator", "idle")[0]),
    ]


def _ways(update: RecordedUpdate, when: str, offset: int) -> str:
    fabric, table = load_fabric(TESTBED), update.tables[when][offset]
    ends = ((SENDER, RECEIVER), (RECEIVER, SENDER))
    cables = [int(fabric.channel_port[path_channels(fabric, table, *pair)[0]]) for pair in ends]
    return ", ".join(f"port {port}" for port in cables)


def _draw(figure: Figure, update: RecordedUpdate) -> None:
    axes = figure.subplots()
    over = 1e3 * update.times("coordinator", "idle")[0]
    names = []
    for place, one in enumerate(ranks(update)):
        names.append(f"rank {place}")
        _rank(axes, update, one, place, over)
    names += ["OpenSM: tables", "agent: phases"]
    sm, agent = len(names) - 2, len(names) - 1
    begun, ended = (1e3 * at for at in update.changing())
    axes.barh(sm, max(ended - begun, 2.0), left=begun, height=0.5, color="#aa3377",
              label="tables change")  # fmt: skip
    marks = [
        1e3 * update.times("coordinator", event)[0]
        for event in ("run", "install", "installed", "idle")
    ]
    for (left, right), text in zip(
        pairwise(marks), ("1, 2: unpath", "3", "4: repath"), strict=True
    ):
        axes.barh(agent, right - left, left=left, height=0.5, color="white", edgecolor="black")
        axes.text((left + right) / 2, agent, text, ha="center", va="center", fontsize=8)
    for mark in marks[1:3]:
        axes.axvline(mark, color="#888888", lw=0.8, ls=":")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(xlabel="ms after the update began (one recorded update)", xlim=(-15, over * 1.02))
    legend(figure, ncols=4, fontsize="small")


def _rank(axes: Axes, update: RecordedUpdate, one: str, place: int, over: float) -> None:
    """Bars of the LIDs that a rank uses; while it moves, connections are drained."""
    away = [1e3 * update.times("subscriber", e, offset=1, id=one)[0] for e in ("move", "moved")]
    back = [1e3 * update.times("subscriber", e, offset=0, id=one)[0] for e in ("move", "moved")]
    bars: tuple[tuple[float, float, str, str], ...] = (
        (-15.0, away[0], _COLOURS[0], "on baseLIDs"),
        (away[0], away[1], "#cccccc", "moves"),
        (away[1], back[0], _COLOURS[1], "on highLIDs"),
        (back[0], back[1], "#cccccc", "moves"),
        (back[1], over, _COLOURS[0], "on baseLIDs"),
    )
    for left, right, colour, label in bars:
        axes.barh(place, right - left, left=left, height=0.5, color=colour, label=label)
