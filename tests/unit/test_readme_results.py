"""README's table of results is what its command prints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.command_line import lab_said

README = (Path(__file__).parents[2] / "README.md").read_text()
ENGINES = re.findall(r"\w[\w-]*", next(re.finditer(r"^\| \| minhop .*$", README, re.M))[0])
ROWS = re.findall(r"^\| `mix:1.*\|$", README, re.M)
PATTERNS = {"at once": "alltoall", "in turn": "shift"}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_what_simulate_time_prints(row: str) -> None:
    name, *printed = (cell.strip() for cell in row.strip("|").split("|"))
    match = re.fullmatch(r"`(.+)`, (.+)", name)
    assert match and len(ENGINES) == len(printed) == 6
    given = [word for engine in ENGINES for word in ("--engine", engine)]
    answer: Any = lab_said(
        "simulate-time", "--fabric", "xgft:2;16,24;1,12", "--jobs", match[1],
        "--pattern", PATTERNS[match[2]], *given, "--json",
    )  # fmt: skip
    found = {each["engine"]: each for each in answer["results"]}
    assert printed == [
        f"{found[engine]['time_mean']:.2f} ({found[engine]['time_worst']:.2f})"
        for engine in ENGINES
    ]
