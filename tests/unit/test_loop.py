"""Passes of the agent against stand-ins, also while it is not known, or changes, what is in force;
tests/live/test_loop.py has the real parties."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.agent.build import build_agent
from sar_agent.agent.decide import Reason
from sar_agent.agent.outcome import Result
from sar_agent.commands.ask import _line
from sar_agent.errors import CheckFailed, SarError
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.conversion import file_to_routes
from sar_agent.formats.export import export_routes
from sar_agent.formats.routes_file import RoutesFile, read_generation
from sar_agent.install import plan as plan_module
from sar_agent.jobs import JobMix
from sar_agent.jobs.filter import host_sets
from sar_agent.jobs.jobmap import parse_jobmap
from sar_agent.jobs.record import JobRecord
from sar_agent.routing import Options, load_engine
from sar_agent.routing.routes import Routes
from tests.worlds.agent_world import JOBS, World
from tests.worlds.fake_opensm import job
from tests.worlds.oracles import path


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_first_then_nothing_then_a_job_ends(world: World) -> None:
    report = world.once()
    assert (report.result, report.reason) == (Result.INSTALLED, Reason.FIRST)
    state = world.agent.installed.store.load()
    assert state is not None and state.generation == world.bridge.generation == 1
    assert state.jobs == host_sets(JOBS)
    assert world.value("sar_agent_engine_in_force", engine="sar") == 1
    assert world.value("sar_agent_engine_in_force", engine="minhop") == 0
    planned = world.value("sar_agent_effective_efi_max", routes="planned")
    assert planned == world.value("sar_agent_effective_efi_max", routes="in_force")
    job_map = (world.folder / "run/job-to-terminal.map").read_text()
    assert {job.id for job in parse_jobmap(job_map)} == {"1", "2"}

    world.source.records = (job("7", *JOBS[0].hosts), job("8", *JOBS[1].hosts))
    assert world.once().result is Result.NOTHING, "other ids on the same hosts"
    world.source.records = JOBS[:1]
    report = world.once()
    assert (report.result, report.reason) == (Result.INSTALLED, Reason.JOBS)
    assert world.bridge.loads == [1, 2]
    assert world.value("sar_agent_reroutes_total", reason="jobs_changed", result="installed") == 1


@pytest.mark.parametrize("content", ["", "{", '{"generation": "x"}', "\x00\xff"])
def test_a_corrupt_state_is_none_and_said_once(
    world: World, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    world.once()
    (world.folder / "state/state.json").write_text(content)
    assert world.once().reason is Reason.FIRST
    assert world.bridge.generation == 2, "numbers only grow"
    assert caplog.text.count("cannot be used") == 1


@pytest.mark.parametrize("how", ["cut", "flipped", "a folder"])
def test_kept_generations_are_looked_at_when_the_agent_starts(
    world: World, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing was once said before a rollback needed one."""
    world.once()
    world.source.records = JOBS[:1]
    world.once()
    kept = world.folder / "state/generations/1.sar"
    image = bytearray(kept.read_bytes())
    kept.unlink()
    if how == "a folder":
        kept.mkdir()
    else:
        image[len(image) // 2] ^= 1
        kept.write_bytes(image[:-1] if how == "cut" else image)
    world.restart()
    told = [line for line in caplog.messages if "no rollback can use it" in line]
    assert len(told) == 1 and "generations/1.sar" in told[0]


def test_fallback_is_mended_with_the_new_fabric(world: World) -> None:
    world.once()
    world.cut()
    world.bridge.fabric = world.fabric
    world.bridge.fall_back()
    report = world.once()
    assert (report.result, report.reason) == (Result.INSTALLED, Reason.FALLBACK)
    assert world.bridge.tables is not None
    row = world.bridge.tables.switch_guids.tolist().index(int(world.fabric.switch_guid[0]))
    assert not (world.bridge.tables.forwarding[0, row] == 5).any()


def test_a_refusal_reads_the_fabric_again_and_plans_again(world: World) -> None:
    world.bridge.refuse = ["stale"]
    world.bridge.on_refusal = [world.cut]
    assert world.once().result is Result.INSTALLED
    assert world.bridge.loads == [1, 1], "what was refused was never in force"


def test_a_refusal_on_the_same_fabric_is_not_repeated_at_once(world: World) -> None:
    world.once()
    good = (world.folder / "run/routes.sar").read_bytes()
    state = (world.folder / "state/state.json").read_bytes()
    world.source.records, world.bridge.refuse = JOBS[:1], ["no lanes"] * 9
    report = world.once()
    assert report.result is Result.FAILED and "no lanes" in report.sentence
    assert world.bridge.loads == [1, 2]
    assert (world.folder / "run/routes.sar").read_bytes() == good
    assert (world.folder / "state/state.json").read_bytes() == state
    assert world.agent.committer.decisions.history.last(1)[0].message == "no lanes"
    assert world.value("sar_agent_reroutes_total", reason="jobs_changed", result="failed") == 1


def test_repeated_failure_waits_and_a_new_job_does_not(world: World) -> None:
    world.bridge.refuse = ["no"] * 9
    assert [world.once().result for _ in range(3)] == [
        Result.FAILED,
        Result.FAILED,
        Result.WAITING,
    ]
    assert world.value("sar_agent_last_success_timestamp_seconds") == 0, "waiting is no success"
    world.source.records = JOBS[:1]
    assert world.once().result is Result.FAILED
    world.bridge.refuse = []
    world.source.records = JOBS
    assert world.once().result is Result.INSTALLED


def test_routes_that_fail_the_check_are_never_installed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.once()

    class Refuses:
        def require(self) -> None:
            raise CheckFailed("credit loop in virtual lane 0")

    monkeypatch.setattr(plan_module, "check_and_prove", lambda *_: (Refuses(), None))
    world.source.records = JOBS[:1]
    report = world.once()
    assert report.result is Result.FAILED and "credit loop" in report.sentence
    assert world.bridge.loads == [1]
    assert world.value("sar_agent_check_failures_total") == 1


def test_slurm_away_keeps_the_last_jobs(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.once()
    world.source.away = "squeue gave no answer within 10 s"
    assert world.once().result is Result.NOTHING
    assert world.once().result is Result.NOTHING
    assert world.value("sar_agent_slurm_reachable") == 0
    assert caplog.text.count("going on with what was read") == 1
    world.cut()
    assert world.once().reason is Reason.FABRIC, "a dead link is mended without Slurm"
    state = world.agent.installed.store.load()
    assert state is not None and state.jobs == host_sets(JOBS)
    world.source.away = ""
    world.once()
    assert world.value("sar_agent_slurm_reachable") == 1


def test_slurm_that_never_answered_changes_nothing(world: World) -> None:
    world.source.away = "slurm_load_jobs error"
    report = world.once()
    assert report.result is Result.FAILED and "slurm_load_jobs" in report.sentence
    assert world.bridge.loads == []


def test_a_fabric_that_cannot_be_read_keeps_the_last(world: World) -> None:
    world.once()
    text = world.net.read_text()
    world.net.write_text(text[: len(text) // 2])
    world.bridge.topology_changes += 1
    assert world.once().result is Result.NOTHING
    assert world.agent.observer.fabric.problem
    world.net.write_text(text)
    world.once()
    assert not world.agent.observer.fabric.problem


def test_a_fabric_in_two_pieces_is_one_clear_sentence(world: World) -> None:
    world.once()
    world.cut(0)
    world.cut(1)
    report = world.once()
    assert report.result is Result.FAILED and "2 pieces" in report.sentence
    assert world.bridge.loads == [1]


def test_a_silent_opensm_is_never_written_to(world: World) -> None:
    world.bridge.away = True
    report = world.once()
    assert report.result is Result.FAILED and "does not answer" in report.sentence
    assert not (world.folder / "run/routes.sar").exists()
    assert world.value("sar_agent_sm_reachable") == 0
    assert world.value("sar_agent_effective_efi_max", routes="planned") is not None
    world.bridge.away = False
    assert world.once().result is Result.INSTALLED


def test_a_standby_is_left_alone(world: World) -> None:
    world.bridge.sm_state = "standby"
    report = world.once()
    assert report.result is Result.FAILED and "not the master but standby" in report.sentence
    assert world.bridge.loads == []


@pytest.mark.parametrize("socket", ["none", "that nobody answers"])
def test_observing_without_the_plugin_measures_opensm_s_dump(tmp_path: Path, socket: str) -> None:
    world = World(tmp_path, mode="observe")
    world.bridge.away = True
    if socket == "none":
        world.bridge.socket_path.unlink()
    routes = load_engine("minhop").route(world.fabric, JobMix.of([]), Options())
    export_routes(tmp_path, world.fabric, routes, ["lfts"])
    manager = world.bridge.manager
    manager.lfts_dump = tmp_path / "lfts.dump"
    world.agent = build_agent(world.agent.config, manager, world.source)
    assert world.once().result is Result.PLANNED
    assert world.value("sar_agent_dark_fiber_ratio", routes="in_force") is not None
    site = world.agent.observer.observe()
    assert site.status is None and site.in_force and not site.in_force.confirmed
    assert (site.in_force.routes.egress == routes.egress).all()


def test_unknown_hosts_are_counted_and_said_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.source.records = (*JOBS, job("3", "n003", "n007", "ghost"), job("4", "ghost", "n004"))
    assert world.once().result is Result.INSTALLED
    world.once()
    assert world.value("sar_agent_unknown_hosts") == 1
    assert world.value("sar_agent_multi_switch_jobs") == 3
    assert caplog.text.count("ghost") == 1


def test_topology_conf_filters_and_its_edit_is_the_reason(world: World, tmp_path: Path) -> None:
    conf = tmp_path / "topology.conf"
    wide = "SwitchName=a Nodes=n[001-004]\nSwitchName=b Nodes=n[005-016]\n"
    conf.write_text(wide + "SwitchName=top Switches=a,b\n")
    world.restart(topology=str(conf))
    world.once()
    assert world.value("sar_agent_multi_switch_jobs") == 2
    conf.write_text("SwitchName=a Nodes=n[001-016]\n")
    assert world.once().reason is Reason.TOPOLOGY
    assert world.value("sar_agent_multi_switch_jobs") == 0
    conf.write_text("nonsense")
    assert world.once().result is Result.NOTHING, "the last good one is kept"
    assert world.value("sar_agent_multi_switch_jobs") == 0


@pytest.mark.parametrize("name", ["job-to-terminal.map", "history.sqlite", "generations"])
def test_a_failed_write_is_reported_and_the_pass_goes_on(
    world: World, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A folder, or a file, in the way stands for a full disk: even root cannot write there."""
    folder = world.folder / ("run" if name.endswith("map") else "state")
    folder.mkdir(exist_ok=True)
    if name == "generations":
        (folder / name).write_text("in the way")
    else:
        (folder / name / "in the way").mkdir(parents=True)
    assert world.once().result is Result.INSTALLED
    assert world.once().result is Result.NOTHING
    lines = [r for r in caplog.records if r.levelno == logging.WARNING and name in r.getMessage()]
    assert len(lines) == 1


@pytest.mark.parametrize(("name", "loads"), [("routes.next", [1]), ("routes.sar", [1, 2])])
def test_routes_that_cannot_be_written_are_said(world: World, name: str, loads: list[int]) -> None:
    world.once()
    path = world.folder / "run" / name
    path.unlink(missing_ok=True)
    (path / "in the way").mkdir(parents=True)
    world.source.records = JOBS[:1]
    report = world.once()
    assert report.result is Result.FAILED and name in report.sentence
    assert world.bridge.loads == loads
    state = world.agent.installed.store.load()
    assert state is not None and state.generation == 1


def test_unreadable_tables_are_not_replaced(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be proved of a way that begins nobody knows where."""
    world.once()

    def no_room() -> Path:
        raise SarError("no room for the dump (test)")

    world.source.records = JOBS[:1]
    with monkeypatch.context() as patch:
        patch.setattr(world.bridge, "dump", no_room)
        world.bridge.routings += 1  # what was read back last may have changed
        report = world.once()
    assert report.result is Result.FAILED and "could not be read back" in report.sentence
    assert world.bridge.loads == [1]
    assert world.once().result is Result.INSTALLED


OTHERS = (
    job("8", "n003", "n004", "n006", "n012", "n014", "n015"),
    job("9", "n001", "n002", "n005", "n009", "n011", "n013"),
)
"""Jobs that need other exceptions."""


def test_nothing_is_installed_from_what_is_not_confirmed(world: World) -> None:
    """Generation 3 was sent while a switch had not confirmed generation 2, and
    the history said that any mixture was safe."""
    world.once()
    world.bridge.deaf = (0,)
    world.source.records = JOBS[:1]
    report = world.once()
    assert report.result is Result.FAILED and "have not confirmed" in report.sentence
    assert read_generation(world.folder / "run/routes.sar") == 1
    report = world.once()
    assert report.result is Result.LATER and "1 switch has not confirmed" in report.sentence
    assert world.bridge.loads == [1, 2]
    world.source.records = OTHERS
    assert world.bridge.tables and world.bridge.tables.had is not None
    unknown = np.where(world.bridge.tables.had == 0, 0, 254)
    known, world.bridge.tables = world.bridge.tables, replace(world.bridge.tables, had=unknown)
    report = world.once()
    assert report.result is Result.LATER and "not known while switches" in report.sentence
    assert world.bridge.loads == [1, 2]
    assert world.agent.committer.decisions.history.last(1)[0].generation == 0, (
        "nothing was installed"
    )
    world.bridge.tables = known
    world.bridge.confirm()
    assert world.once().result is Result.INSTALLED
    assert world.bridge.generation == read_generation(world.folder / "run/routes.sar") == 3


def test_the_history_tells_what_really_changed(world: World) -> None:
    """Found live: a fallback engine was in force when the load had its turn, and the history
    counted from the tables before."""
    world.once()
    world.source.records = JOBS[:1]
    rewritten: list[RoutesFile] = []

    def fall_back() -> None:
        if not rewritten:
            world.bridge.fall_back()
            assert world.bridge.tables
            rewritten.append(world.bridge.tables)

    world.bridge.on_load = [fall_back]
    assert world.once().result is Result.INSTALLED
    row, now = world.agent.committer.decisions.history.last(1)[0], world.bridge.tables
    assert now and row.generation == world.bridge.generation == 2
    assert row.entries_changed == int((now.forwarding != rewritten[0].forwarding).sum())


def ring_entries_that_differ(fabric: Fabric, old: Routes, new: Routes, running: JobRecord) -> int:
    """From host to host of a job, by its order of ranks, along the old tables."""
    rank, moved = [fabric.job_ports[host][0] for host in running.hosts], set()
    for source, to in zip(rank, [*rank[1:], rank[0]], strict=True):
        for c in path(fabric, old, int(fabric.terminal_switch[source]), to) or ():
            at = int(fabric.channel_source[c])
            if old.egress[0, to, at] != new.egress[0, to, at]:
                moved.add((to, at))
    return len(moved)


@pytest.mark.parametrize("mode", ["install", "observe"])
def test_the_history_counts_entries_of_running_rings_that_move(tmp_path: Path, mode: str) -> None:
    """Jobs start and end; once a fallback engine's tables are replaced."""
    fabric = load_fabric("xgft:2;5,5;1,5")
    world = World(tmp_path, fabric, mode=mode, engine="sar-plus", interval_seconds=1, min_gain=0)
    # Hosts 1, 8, 15, …: their rings meet on D-mod-k and on minhop.
    names = [f"n{1 + 7 * k % 25:03}" for k in range(25)]
    jobs = tuple(job(str(k), *sorted(names[k::3])) for k in range(3))
    before: tuple[JobRecord, ...] = ()
    old = None
    for records in (jobs[:2], jobs, jobs[1:], jobs[2:]):
        if mode == "install" and records == jobs[1:]:
            world.bridge.fall_back()
            assert world.bridge.tables
            old = file_to_routes(world.fabric, world.bridge.tables)
        world.source.records = records
        assert world.once().result in (Result.INSTALLED, Result.PLANNED)
        planned = world.agent.current.planned
        assert planned is not None
        [row] = world.agent.committer.decisions.history.last(1)
        if old is None:
            assert row.ring_entries_moved is None, "nobody knows for whom the first tables were"
        else:
            kept = [record for record in before if record in records]
            moved = [ring_entries_that_differ(world.fabric, old, planned.routes, r) for r in kept]
            assert row.ring_entries_moved == sum(moved)
            if mode == "install" and records == jobs[1:]:
                assert sum(moved) > 0
                assert f" {sum(moved)} of them of running rings" in _line(row)
        before, old = records, planned.routes
