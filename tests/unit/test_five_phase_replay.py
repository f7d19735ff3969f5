"""Traces that the model can do, and traces that it cannot, down to the line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sar_agent.errors import InputError, Unavailable
from sar_lab.five_phase.__main__ import main
from sar_lab.five_phase.model_replay import read_trace, replay

pytestmark = pytest.mark.skipif(
    shutil.which("spin") is None or shutil.which("gcc") is None,
    reason="no spin: run tests/install-debian-packages",
)
MODEL = Path(__file__).parents[2] / "libs/migrate/model"
U = 1790000000000000000  # as the agent numbers updates


def sub(event: str, **more: Any) -> dict[str, Any]:
    return {"party": "subscriber", "id": "00000000000000aa", "job": "7", "event": event, **more}


def agent(event: str, update: int = U, **more: Any) -> dict[str, Any]:
    return {"party": "coordinator", "event": event, "update": update, **more}


JOINED = [
    sub("start", offset=1),
    sub("subscribe", update=0, offset=1),
    agent("subscribe", U - 5, subscriber="00000000000000aa", phase="idle"),
    sub("answer", phase="idle", update=U - 5, counts=True),
    sub("move", offset=0, update=U - 5),
    sub("moved", offset=0, update=U - 5),
]
AWAY = [
    agent("run"),
    sub("notice", phase="unpath", update=U),
    sub("move", offset=1, update=U),
    sub("moved", offset=1, update=U),
    sub("ack", phase="unpath", update=U, offset=1),
    agent("ack", subscriber="00000000000000aa", phase="unpath"),
]
BACK = [
    agent("install"),
    agent("installed", ok=True),
    agent("repath"),
    sub("notice", phase="repath", update=U),
    sub("move", offset=0, update=U),
    sub("moved", offset=0, update=U),
    sub("ack", phase="repath", update=U, offset=0),
    agent("ack", subscriber="00000000000000aa", phase="repath"),
    agent("idle"),
]


def timed(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    texts = [json.dumps(one | {"at": 1.0 + i}) for i, one in enumerate(lines)]
    return read_trace({"a trace": "\n".join(texts)})


def test_a_whole_update_is_one_of_the_models() -> None:
    verdict = replay(timed(JOINED + AWAY + BACK), MODEL)
    assert (verdict.refused, verdict.accepted) == (None, verdict.events)
    assert verdict.events == len(JOINED + AWAY + BACK) - 1  # repath comes with installed


def killed_after_saving(phase: str, update: int = U) -> dict[str, Any]:
    return agent("start", update, phase=phase, members=["00000000000000aa"], why="")


@pytest.mark.long
@pytest.mark.parametrize(
    ("seen", "saved"),
    [
        (AWAY[:0], "unpath"),
        (AWAY, "install"),
        ([*AWAY, BACK[0]], "repath"),
        (AWAY, "repath"),
        ([*AWAY, *BACK[:-1]], "idle"),
    ],
)
def test_a_coordinator_killed_between_disk_and_trace(
    seen: list[dict[str, Any]], saved: str
) -> None:
    start = killed_after_saving(saved)
    then = [agent("installed", ok=False)] * (saved == "install") + [agent("idle")] * (
        saved != "idle"
    )
    again = [agent("run", U + 1), agent("repath", U + 1), agent("idle", U + 1)]
    lines = timed([*JOINED, *seen, start, *then, *again])
    assert replay(lines, MODEL).refused is None


@pytest.mark.long
def test_an_install_without_the_acknowledgement_is_refused() -> None:
    lines = timed([*JOINED, *AWAY[:-1], *BACK])
    refused = replay(lines, MODEL).refused
    assert refused and refused["event"] == "install"


def test_a_model_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"check\.sh: No such file.*; name libs/migrate/model"):
        replay(timed(JOINED), tmp_path)


def test_malformed_traces_are_refused() -> None:
    with pytest.raises(InputError, match="a trace:2: this is not a line of a trace: nonsense"):
        read_trace({"a trace": '{"at": 1}\nnonsense'})


@pytest.mark.long
def test_by_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text("\n".join(json.dumps(one | {"at": 1.0}) for one in JOINED))
    assert main([str(MODEL), str(file)]) == 0
    assert capsys.readouterr().out == "the model can do all 6 events\n"
    file.write_text(json.dumps(BACK[-1] | {"at": 1.0}))
    assert main([str(MODEL), str(file)]) == 1
    assert "0 of 1 events" in capsys.readouterr().out
    assert main([str(MODEL), str(tmp_path / "none")]) == 2
