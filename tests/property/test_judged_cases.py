"""What the plugin does in single cases, with its own engine and events (sweeps_run.c)."""

from __future__ import annotations

import random
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sar_agent.formats.routes_file import RoutesFile, write_routes_file
from tests.worlds.judge import Fabric, Table
from tests.worlds.live.built import built
from tests.worlds.repair_steps import World, build, plan
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


@dataclass
class Masters:
    """A fabric, the routes that this OpenSM has kept, and those of another one, which was master
    meanwhile."""

    world: World
    live: Fabric
    kept: RoutesFile
    newer: Path
    entries: dict[int, Table]
    """Of the switches, after the other one's routes were sent."""


@pytest.fixture
def masters(program: Path, tmp_path: Path) -> Masters:
    world = build(random.Random(1), "tree")
    live = world.fabric()
    kept, other = plan(world, live), plan(world, live)
    newer = replace(other, generation=kept.generation + 1)
    with sweeps(newer, tmp_path, program) as running:
        entries = running.sweep(world, live).tables
    with sweeps(kept, tmp_path, program) as running:
        assert running.sweep(world, live).tables != entries
    write_routes_file(tmp_path / "newer.sar", newer)
    return Masters(world, live, kept, tmp_path / "newer.sar", entries)


def test_a_master_that_comes_back_goes_on_where_switches_have_its_routes(
    masters: Masters, program: Path, tmp_path: Path
) -> None:
    """The other one has installed nothing: nobody is asked. Nor where a cable has died since."""
    one, kept = masters, masters.kept.generation
    with sweeps(masters.kept, tmp_path, program) as running:
        running.sweep(one.world, one.live)
        running.lost()
        running.answer(one.newer)
        chosen = running.sweep(one.world, one.live)
        assert (chosen.how, chosen.generation, chosen.error) == ("kept", kept, "")
        running.lost()
        used = {(s, port) for s, row in chosen.tables.items() for port in row.values()}
        one.world.cut.add(next(c for c in sorted(one.world.cables) if used & set(c)))
        chosen = running.sweep(one.world, one.world.fabric())
        assert (chosen.how, chosen.generation, chosen.error) == ("repaired", kept, "")


@pytest.mark.parametrize("agent", [True, False])
def test_a_master_that_comes_back_asks_the_agent(
    agent: bool, masters: Masters, program: Path, tmp_path: Path
) -> None:
    """What the other one has installed is not in the kept file."""
    one, kept = masters, masters.kept.generation
    with sweeps(masters.kept, tmp_path, program) as running:
        assert running.sweep(one.world, one.live).generation == kept
        running.lost()
        running.has(one.entries)
        if agent:
            running.answer(one.newer)
        chosen = running.sweep(one.world, one.live)
        assert chosen.generation == kept + agent
        assert ("another subnet manager was master" in chosen.error) == (not agent)
        assert ("switches have other entries" in chosen.error) == (not agent)


def test_a_switch_that_is_not_read_back_has_unknown_entries(
    masters: Masters, program: Path, tmp_path: Path
) -> None:
    one = masters
    with sweeps(masters.kept, tmp_path, program) as running:
        running.sweep(one.world, one.live)
        running.lost()
        running.answer(one.newer)
        chosen = running.sweep(one.world, one.live, silent=[min(one.live.switches)])
        assert chosen.generation == masters.kept.generation + 1, "the agent was asked"


def test_a_file_that_was_copied_while_the_agent_is_asked_counts(
    masters: Masters, program: Path, tmp_path: Path
) -> None:
    """The agent has no routes yet, but an archive has brought those of the other master,
    which the switches have."""
    one = masters
    with sweeps(masters.kept, tmp_path, program) as running:
        running.sweep(one.world, one.live)
        running.lost()
        running.has(one.entries)
        running.copied(one.newer)
        chosen = running.sweep(one.world, one.live)
        assert (chosen.generation, chosen.error) == (masters.kept.generation + 1, "")
