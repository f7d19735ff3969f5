"""Other processes that compile what an assessment needs later."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from numba import njit
from numba.core import event

from sar_lab.assess import compile_ahead
from sar_lab.assess.compile_ahead import PARTS, compile_parts
from sar_lab.assess.rate import ENGINES


class Started:
    """In place of subprocess.Popen: what would have been started."""

    def __init__(self, command: list[str], **_: Any) -> None:
        commands.append(command)


commands: list[list[str]] = []


@pytest.mark.parametrize(("processors", "others"), [(1, 0), (2, 1), (3, 2), (64, len(PARTS))])
def test_the_first_kernel_starts_one_for_each_other_processor(
    processors: int, others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands.clear()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
    monkeypatch.setattr(subprocess, "Popen", Started)
    with event.install_listener("numba:compile", compile_ahead._Starter()):
        assert not commands, "nothing is compiled yet"
        for number in (1, 2):
            assert njit(lambda x, number=number: x + number)(1) == 1 + number
            assert len(commands) == others


def test_the_command_that_is_started_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    commands.clear()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(subprocess, "Popen", Started)
    monkeypatch.setattr(compile_ahead, "PARTS", (("no-such-engine",),))
    compile_ahead._Starter().on_start(None)  # type: ignore[arg-type]
    monkeypatch.undo()
    process = subprocess.Popen(
        commands[0], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr and process.stdin
    assert "no-such-engine" in process.stderr.read(), "it came as far as this engine"
    process.stdin.close()
    process.wait()


def test_it_ends_with_the_process_that_started_it() -> None:
    code = (
        "import time; from sar_lab.assess.compile_ahead import end_with_stdin; end_with_stdin(); "
        "print('ready', flush=True); time.sleep(10**6)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdin
    assert process.stdout.readline() == "ready\n"
    process.stdin.close()
    assert process.wait() == 0


def test_the_parts_are_engines_of_an_assessment_and_all_run() -> None:
    named = [part for parts in PARTS for part in parts]
    assert set(named) <= {*ENGINES, "simulate"} and len(named) == len(set(named))
    compile_parts(("dfsssp", "simulate"))
