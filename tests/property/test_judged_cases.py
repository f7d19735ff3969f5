"""What the plugin does in single cases, with its own engine and events (sweeps_run.c)."""

from __future__ import annotations

import random
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from sar_agent.formats.routes_file import write_routes_file
from tests.worlds.live.built import built
from tests.worlds.repair_steps import build, plan
from tests.worlds.sweeps_program import sweeps

CASES = Path(__file__).parent.parent / "worlds" / "judged_cases"


@pytest.fixture(scope="module")
def program() -> Path:
    return built("opensm_bridge", "sweeps_run")


def test_a_second_step_follows_what_was_put_off(program: Path) -> None:
    """A cable is moved. Within a packet's life another one dies, and a host with LID 79 is plugged
    in there. The repair drops its packets for a step, and a LID of a switch waits. The next routing
    sets the LID, but cannot repair; the one after that gives the host its routes."""
    said = subprocess.run(
        [program, CASES / "two_changes.sar"],
        input=(CASES / "two_changes.txt").read_text(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    said = said[: said.index("idle")]  # no routing follows by itself
    drops = [line.split()[3] for line in said if line.startswith(("kept", "repaired"))]
    assert drops == ["0", "0", "0", "1", "1", "0"]
    last = [line for line in said if line.startswith("table")][-3:]
    assert all(" 79:" in line for line in last), last
    assert any("is not installed" in line for line in said), "the reason stands in last_error"


@pytest.mark.parametrize("agent", [True, False])
def test_a_master_that_comes_back_asks_the_agent(
    agent: bool, program: Path, tmp_path: Path
) -> None:
    """Another OpenSM was master meanwhile, and what it has installed is not in the kept file."""
    world = build(random.Random(1), "tree")
    live = world.fabric()
    made = plan(world, live)
    write_routes_file(tmp_path / "newer.sar", replace(made, generation=made.generation + 1))
    with sweeps(made, tmp_path, program) as running:
        assert running.sweep(world, live).generation == made.generation
        running.lost()
        if agent:
            running.answer(tmp_path / "newer.sar")
        chosen = running.sweep(world, live)
        assert chosen.generation == made.generation + agent
        assert ("another subnet manager was master" in chosen.error) == (not agent)


def test_a_file_that_was_copied_while_the_agent_is_asked_counts(
    program: Path, tmp_path: Path
) -> None:
    """The agent has no routes yet, but its standby link has brought those of the other master."""
    world = build(random.Random(1), "tree")
    live = world.fabric()
    made = plan(world, live)
    with sweeps(made, tmp_path, program) as running:
        running.sweep(world, live)
        running.lost()
        write_routes_file(tmp_path / "newer.sar", replace(made, generation=made.generation + 1))
        running.copied(tmp_path / "newer.sar")
        assert running.sweep(world, live).generation == made.generation + 1
