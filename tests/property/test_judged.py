"""The plugin's own repairs in random worlds, judged from the definition."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.examples import share
from tests.worlds.judged_stories import tell
from tests.worlds.live.built import built
from tests.worlds.repair_steps import SHAPES


@pytest.fixture(scope="module")
def program() -> Path:
    return built("opensm_bridge", "sweeps_run")


@pytest.mark.parametrize("shape", SHAPES)
def test_no_packet_circles_or_is_lost(shape: str, program: Path, tmp_path: Path) -> None:
    seen = Counter[str]()
    for seed in range(share(100)):
        tell(seed, shape, tmp_path, program, seen)
    print(shape, dict(seen))
    assert seen["judged repairs"] > share(25)


REPAIRS, PARTS = 100_000, 20


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_many_repairs(part: int, program: Path, tmp_path: Path) -> None:
    seen, seed = Counter[str](), 1_000_000 * (part + 1)
    while seen["judged repairs"] < REPAIRS // PARTS:
        for shape in SHAPES:
            tell(seed, shape, tmp_path, program, seen)
        seed += 1
    print(f"part {part}: {json.dumps(seen)}")
