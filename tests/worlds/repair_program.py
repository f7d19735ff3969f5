"""Runs the plugin's repair (opensm_bridge/tests/repair_run.c) on failures of a file's fabric."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sar_agent.formats.routes_file import RoutesFile, read_routes_file, write_routes_file
from tests.worlds.live.built import built

_ANSWER = re.compile(r"changed (\d+) later (\d+) dropping ([01]) ms ")


@dataclass
class Repaired:
    """One answer; `forwarding` uint8[O, S, D] is in force then."""

    refusal: str
    entries: int
    later: int
    dropping: bool
    forwarding: NDArray[np.uint8]


class RepairProgram:
    """A running program that holds the routes in force."""

    def __init__(self, process: subprocess.Popen[str], folder: Path, plan: RoutesFile) -> None:
        self.process, self.folder, self.file, self.now = process, folder, plan, plan.forwarding
        self.verified = self._line()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def _send(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def load(self, plan: RoutesFile) -> None:
        self._send("load\n")
        self.file, self.now = plan, plan.forwarding

    def go(self, commands: str) -> Repaired:
        """`commands` ends with "go"."""
        self._send(commands)
        number, _, words = self._line().partition(" ")
        found = _ANSWER.match(words)
        if not found:
            assert words.startswith("refused "), words
            return Repaired(words.removeprefix("refused "), 0, 0, False, self.now)
        written = self.folder / f"{number}.sar"
        self.file = read_routes_file(written)
        self.now = self.file.forwarding.copy()
        written.unlink()
        entries, later, dropping = found.groups()
        return Repaired("", int(entries), int(later), dropping == "1", self.now)


@contextmanager
def repairing(plan: RoutesFile, folder: Path) -> Iterator[RepairProgram]:
    """The program, built with ASan and UBSan, with `plan` in force in the fabric of that file."""
    if shutil.which("gcc") is None or shutil.which("make") is None:
        pytest.skip("no gcc or make to build the plugin's repair with")
    program = built("opensm_bridge", "repair_run")
    write_routes_file(folder / "plan.sar", plan)
    process = subprocess.Popen(
        [program, folder / "plan.sar", folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield RepairProgram(process, folder, plan)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0 and not errors, errors
    finally:
        process.kill()
        process.wait()
