"""Other processes that compile what an assessment needs later."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from numba import njit
from numba.core import event

from sar_lab.assess import compile_ahead
from sar_lab.assess.compile_ahead import PARTS, WITHIN, compile_parts
from sar_lab.assess.rate import ENGINES


class Started:
    """In place of subprocess.Popen: what would have been started."""

    def __init__(self, command: list[str], **_: Any) -> None:
        commands.append(command)
        self.stdout = os.fdopen(os.pipe()[0])


commands: list[list[str]] = []


@pytest.fixture(autouse=True)
def no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    commands.clear()
    monkeypatch.setattr(compile_ahead, "_others", [])


@pytest.mark.parametrize(("processors", "others"), [(1, 0), (2, 1), (3, 2), (64, len(PARTS))])
def test_the_first_kernel_starts_one_for_each_other_processor(
    processors: int, others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
    monkeypatch.setattr(subprocess, "Popen", Started)
    with event.install_listener("numba:compile", compile_ahead._Starter()):
        assert not commands, "nothing is compiled yet"
        for number in (1, 2):
            assert njit(lambda x, number=number: x + number)(1) == 1 + number
            assert len(commands) == others


def test_the_command_that_is_started_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", Started)
    compile_ahead._Other(("legal-paths", "no-such-engine"))
    monkeypatch.undo()
    process = subprocess.Popen(
        commands[0],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin and process.stdout and process.stderr
    said, errors = process.stdout.read(), process.stderr.read()
    process.stdin.close()
    process.wait()
    assert said.split() == ["legal-paths", "no-such-engine"]
    assert "no-such-engine" in errors, "it came as far as this engine"


@pytest.mark.parametrize(
    ("at", "wanted", "waits"),
    [
        ("sar-plus", "sar-plus", True),
        ("legal-paths", "ftree", True),
        ("simulate", "sar-plus", False),
        ("sar-plus", "simulate", False),
    ],
)
def test_what_another_process_compiles_is_waited_for(
    at: str, wanted: str, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"import sys; print('earlier'); print({at!r}, flush=True); sys.stdin.read()"
    popen = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda _, **pipes: popen([sys.executable, "-c", code], **pipes)
    )
    other = compile_ahead._Other(())
    compile_ahead._others.append(other)
    while other.now() != at:
        time.sleep(0.01)
    monkeypatch.setattr(compile_ahead, "PATIENCE", 10**6)
    waiting = threading.Thread(target=compile_ahead._wait_for_others, args=(wanted,), daemon=True)
    waiting.start()
    if waits:
        waiting.join(0.2)
        assert waiting.is_alive()
    else:
        waiting.join()
    assert other.process.stdin
    other.process.stdin.close()
    waiting.join()
    other.process.wait()
    assert other.now() is None
    compile_ahead._wait_for_others(at)


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
    assert set(named) <= {*ENGINES, *WITHIN.values(), "simulate"}
    assert len(named) == len(set(named))
    compile_parts(("dfsssp", "simulate", *WITHIN.values()))
