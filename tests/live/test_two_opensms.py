"""Master and standby, each with its agent: whatever is killed, no entry of any switch changes.

While something is killed, all tables are read again and again (`dump_fts`), and compared with those
from before. `pytest -s` prints how long no agent was there to install.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sar_agent.fabric import Fabric
from sar_agent.fabric.opensm_file import read_opensm_fabric
from sar_agent.formats.routes_file import read_routes_file
from sar_agent.services.archive.own import archive_path
from sar_lab.live.process import wait_until
from tests.worlds.live import readback
from tests.worlds.live.pair import Machine, Pair, pair
from tests.worlds.live.readback import Tables

pytestmark = pytest.mark.live
JOBS = ("n[001,005,009]", "n[002,006,010]", "n[003-004,013]")
MORE = (*JOBS, "n[007-008,011-012]")
OTHERS = ("n[001,008,011,014]", "n[002,005,012]", "n[003,007,010]")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with pair(tmp_path_factory.mktemp("pair")) as site:
        yield site


@pytest.fixture
def two(made: Pair) -> Pair:
    """The state that each test begins with: all four run, the first machine's OpenSM is the master
    and its agent has routed for `JOBS`, the other one has its state."""
    made.jobs(*JOBS)
    revive(made)
    made.wait_roles(lambda: made.one.is_master() and is_standby(made.two))
    assert wait_until(made.one.installs, 90), made.one.log()[-3000:]
    assert wait_until(lambda: jobs_of(made.one) == len(JOBS), 60), made.one.log()[-3000:]
    assert wait_until(lambda: made.copied(made.one, made.two), 60), made.two.log()[-3000:]
    return made


def revive(site: Pair) -> None:
    """Start what is not running: the agents, then OpenSM, after `fetch-state` as on docs/ha.md."""
    for machine in (site.one, site.two):
        if machine.agent is None:
            machine.start_agent()
        if not machine.sm.alive():
            machine.cli("fetch-state")  # fails where both were killed
            machine.sm.start()


def is_standby(machine: Machine) -> bool:
    status = machine.status()
    return status is not None and status.sm_state == "standby"


def hand_over(site: Pair) -> None:
    """The first machine is back; its OpenSM has the higher priority."""
    revive(site)
    site.wait_roles(lambda: site.one.is_master() and is_standby(site.two))


def jobs_of(machine: Machine) -> int:
    state = machine.state()
    return -1 if state is None else len(state.jobs)


def generation(machine: Machine) -> int:
    state = machine.state()
    assert state is not None
    return state.generation


def decisions(machine: Machine) -> set[float]:
    return {row.at for row in machine.rows()}


def watch(
    site: Pair,
    act: Callable[[], None],
    holds: Callable[[], bool],
    what: str,
    changes: bool = False,
    masters: int = 1,
) -> None:
    """`masters`: of OpenSMs at a time, as their election has it."""
    seconds, readings, entries, both = site.watch(act, holds, 120)
    print(
        f"\n{what}: {seconds:.1f} s, {readings} readings of all tables, {entries} entries changed, "
        f"both agents could install in {both} of them"
    )
    assert entries == 0 or changes, f"{site.one.sm.log()[-3000:]}\n---\n{site.two.sm.log()[-6000:]}"
    assert both == 0 or masters > 1
    assert readings > 1


def test_the_masters_opensm_is_killed(two: Pair) -> None:
    before = generation(two.one)
    watch(two, two.one.sm.kill, two.two.installs, "kill -9 of the master's OpenSM")
    assert generation(two.two) == before
    assert wait_until(lambda: "this agent installs nothing" in two.one.log(), 30)

    # A new generation of the new master, copied by the machine whose OpenSM is gone.
    two.jobs(*MORE)
    assert wait_until(lambda: generation(two.two) > before and two.two.installs(), 60)
    assert wait_until(lambda: two.copied(two.two, two.one), 60), two.one.log()[-3000:]

    # The first machine is back, and has the higher priority: OpenSM hands over.
    after = generation(two.two)
    watch(two, lambda: hand_over(two), two.one.installs, "OpenSM starts, and is handed over to")
    assert generation(two.one) == after
    assert {row.generation for row in two.one.rows()} >= {before, after}, "nothing is forgotten"


def test_the_masters_agent_is_killed(two: Pair) -> None:
    before, log = generation(two.one), len(two.one.log())

    def kill_and_start() -> None:
        two.one.kill_agent()
        two.one.start_agent()  # as systemd does

    watch(
        two,
        kill_and_start,
        lambda: two.one.installs() and "the same" in two.one.log()[log:],
        "kill -9 of the master's agent, started again at once",
    )
    assert generation(two.one) == before
    assert generation(two.two) == before
    assert is_standby(two.two)


def test_the_masters_host_is_killed(two: Pair) -> None:
    before = generation(two.two)

    def kill() -> None:
        two.one.kill_agent()
        two.one.sm.kill()

    watch(two, kill, two.two.installs, "kill -9 of the master's OpenSM and agent")
    assert generation(two.two) == before

    two.jobs(*MORE)
    assert wait_until(lambda: generation(two.two) > before and two.two.installs(), 60)
    after = generation(two.two)
    watch(two, lambda: hand_over(two), two.one.installs, "the host is back, and is handed over to")
    assert generation(two.one) == after


def test_a_cable_dies_during_a_takeover(two: Pair) -> None:
    """The new master's first routing repairs what the old one had in force. Its agent is not to
    better that: then other entries may change, too."""
    ours = two.two.sections["agent"]
    usual = dict(ours)
    ours |= {"reoptimise_seconds": 3600}
    start_again(two.two)
    assert wait_until(lambda: two.copied(two.one, two.two), 60), two.two.log()[-3000:]
    before, tables, cable = generation(two.one), two.tables(), ("S1-2", 5)
    seen = read_opensm_fabric(two.one.bridge.fabric().path).fabric
    switch = seen.switch_name.index(cable[0])
    dead = int(seen.channel_by_port[switch, cable[1]])
    two.one.sm.kill()
    two.fabric.unlink(*cable)
    try:
        assert wait_until(two.two.installs, 120), two.two.log()[-3000:]
        status, after = two.two.status(), two.tables()
        assert status is not None
        assert (status.engine_in_force, status.generation_in_force) == ("sar", before)
        assert status.amendments > 0 and not status.last_error
        crossing = over(seen, tables, dead)
        other = {key for key in tables if tables[key] != after.get(key)}
        print(f"\na cable dies during a takeover: {len(other)} entries changed")
        assert other and other <= crossing
        ends = {
            (int(seen.switch_guid[seen.channel_source[c]]), int(seen.channel_port[c]))
            for c in (dead, seen.channel_reverse[dead])
        }
        assert not {(guid, port) for (guid, _), port in after.items()} & ends, "nothing uses it"
        assert wait_until(lambda: followed(two.two) == f"{before}+{status.amendments}", 60)
        assert generation(two.two) == before
        assert "amended" in {row.reason for row in two.two.rows()}
    finally:
        two.fabric.relink(*cable)
        two.two.sm.sweep()
        held = wait_until(lambda: two.tables() == tables, 90)
        ours |= usual
        start_again(two.two)
    assert held, "back to the plan"


@pytest.mark.parametrize("more", [False, True], ids=["nothing changed", "jobs changed"])
def test_the_masters_machine_is_paused(two: Pair, more: bool) -> None:
    """Its OpenSM is master again when it goes on, and reads what the switches have. If the other
    one has installed nothing, no entry changes; else its own older routes never return."""
    # A sweep that a pause interrupts ends with the routes that it began with, so none is under way.
    assert wait_until(lambda: (now := two.one.status()) is not None and now.state == "built", 60)
    before, log, tables = generation(two.one), len(two.one.sm.log()), two.tables()
    assert two.one.agent is not None and two.one.sender is not None
    paused = [two.one.sm.pid, two.one.agent.pid, two.one.sender.pid]

    def pause() -> None:
        for pid in paused:
            os.kill(pid, signal.SIGSTOP)
        assert wait_until(two.two.installs, 60), two.two.log()[-3000:]
        if more:
            # Tables that earlier tests left may serve the one or the other already.
            changed = any(served(two, mix) and two.tables() != tables for mix in (MORE, OTHERS))
            assert changed, "the tables of some of these jobs are other ones"

    def go_on() -> None:
        for pid in paused:
            os.kill(pid, signal.SIGCONT)

    try:
        pause()
        after = generation(two.two)
        watch(
            two,
            go_on,
            lambda: is_standby(two.two) and two.one.installs() and generation(two.one) >= after,
            "the master's machine goes on",
            changes=more,
            masters=2,  # until one of them gives way
        )
    finally:
        go_on()
    said = two.one.sm.log()[log:]
    in_force = [int(n) for n in re.findall(r"generation (\d+) is in force", said)]
    # The agent that is asked may answer before it has heard how far the other one has counted.
    shown = f"{two.one.sm.log()[:log][-3000:]}\n--- paused ---\n{said[-3000:]}"
    assert in_force and min(in_force) >= (before + 1 if more else after), shown
    assert "unproved" not in said and "has no routes" not in said


def served(site: Pair, jobs: tuple[str, ...]) -> bool:
    """Whether the second machine's agent installs routes for them."""
    before = generation(site.two)
    site.jobs(*jobs)
    return wait_until(lambda: generation(site.two) > before and site.two.installs(), 60)


def start_again(machine: Machine) -> None:
    machine.kill_agent()
    machine.start_agent()


def followed(machine: Machine) -> str:
    state = machine.state()
    return "" if state is None else state.identity


def over(fabric: Fabric, tables: Tables, dead: int) -> set[tuple[int, int]]:
    """Entries (switch GUID, LID) by which packets come to the cable of that channel."""
    cable = {dead, int(fabric.channel_reverse[dead])}
    index = {int(guid): s for s, guid in enumerate(fabric.switch_guid)}
    found = set()
    for guid, lid in tables:
        at = index[guid]
        for _ in range(fabric.switches):
            port = tables.get((int(fabric.switch_guid[at]), lid), 255)
            channel = int(fabric.channel_by_port[at, port])
            if channel in cable:
                found.add((guid, lid))
            if channel < 0:
                break
            at = int(fabric.channel_target[channel])
    return found


def test_the_machines_do_not_reach_each_other(two: Pair) -> None:
    before, seen = generation(two.one), len(two.one.sent())
    two.split()
    try:
        two.jobs(*MORE)
        assert wait_until(lambda: generation(two.one) > before and two.one.installs(), 60)
        assert wait_until(lambda: "No route to host" in two.one.sent()[seen:], 30)
        assert "No route to host" in two.one.cli("status").stdout
        assert generation(two.two) == before
        assert is_standby(two.two)
    finally:
        two.join()
    watch(two, two.join, lambda: two.copied(two.one, two.two), "they reach each other again")


def test_both_machines_start_at_once(two: Pair) -> None:
    """After a power cut, with an archive that has not arrived: both fetch, whoever is first."""
    before = generation(two.one)
    two.split()
    two.jobs(*MORE)
    assert wait_until(lambda: generation(two.one) > before and two.one.installs(), 60)
    after = generation(two.one)
    for machine in (two.one, two.two):
        machine.kill_agent()
        machine.sm.kill()
        for path in machine.sm.routes_path.parent.glob("routes.*"):
            path.unlink()  # /run is empty
    two.join()

    def start() -> None:
        with ThreadPoolExecutor(2) as both:
            list(both.map(lambda machine: machine.cli("fetch-state"), (two.one, two.two)))
        for machine in (two.one, two.two):
            machine.start_agent()
            machine.sm.start()

    watch(two, start, lambda: two.one.installs() and is_standby(two.two), "both start at once")
    assert generation(two.one) == generation(two.two) == after
    assert two.copied(two.one, two.two)


def test_an_archive_a_day_old_is_not_taken(two: Pair) -> None:
    before = generation(two.one)
    archive = archive_path(two.one.state_dir)
    old, now = archive.read_bytes(), time.time()
    two.jobs(*MORE)
    assert wait_until(lambda: generation(two.one) > before and two.one.installs(), 60)
    assert wait_until(lambda: two.copied(two.one, two.two), 60), two.one.sent()
    kept = two.folder / "archive"
    kept.write_bytes(old)
    os.utime(kept, (now - 86400, now - 86400))
    with kept.open("rb") as file:
        answer = subprocess.run(
            two.one.sections["agent"]["peer"], stdin=file, capture_output=True, text=True
        )
    assert answer.returncode == 0 and '"has":false' in answer.stdout
    assert f"is older (generation {before}," in answer.stdout
    assert two.copied(two.one, two.two)
    # Nor is one that the other machine gives.
    two.two.kill_agent()
    for path in (two.two.state_dir / "archive", two.two.state_dir / "state.json"):
        path.unlink()
    kept.replace(archive_path(two.two.state_dir))
    said = two.one.cli("fetch-state")
    assert "the OpenSM here is the master" in said.stdout and said.returncode == 0
    two.two.start_agent()
    assert wait_until(lambda: two.copied(two.one, two.two), 90), two.one.sent()


def test_both_are_masters_for_a_moment(two: Pair) -> None:
    """The fabric falls into S1-0 with S2-0, and the rest: each OpenSM is the master of its part.
    Then the cables are back, and one of two masters gives way."""
    before = generation(two.one)
    cables = [("S1-0", 6), ("S1-1", 5), ("S1-2", 5), ("S1-3", 5)]
    for cable in cables:
        two.fabric.unlink(*cable)
    two.one.sm.sweep()
    both = (two.one, two.two)
    assert wait_until(lambda: all(one.is_master() for one in both), 90)
    for one in both:
        assert wait_until(lambda one=one: "the OpenSM here is the master" in one.sent(), 60)
        assert wait_until(lambda one=one: generation(one) > before, 90), one.log()[-3000:]
    apart = [generation(one) for one in both]
    for cable in cables:
        two.fabric.relink(*cable)
    for one in both:
        one.sm.sweep()
    two.wait_roles(lambda: sorted(map(is_standby, both)) == [False, True])
    leader, other = both if is_standby(two.two) else both[::-1]
    assert wait_until(leader.installs, 90), leader.log()[-3000:]
    # The other may have installed a moment ago, which the leader has not heard of: then both have
    # given the same number. A lower one would be refused by the other's plugin.
    own = apart[both.index(leader)]
    assert wait_until(lambda: generation(leader) > own and leader.installs(), 90)
    assert wait_until(lambda: generation(leader) >= max(apart), 90)
    assert wait_until(lambda: two.copied(leader, other), 90), other.log()[-3000:]

    lids = readback.lids(leader.sm.folder / "cache")

    def in_force() -> bool:
        """The copy is what switches have; while the leader installs better routes, it is not."""
        return readback.wanted(read_routes_file(other.sm.routes_path), lids) == two.tables()

    assert wait_until(in_force, 90), leader.log()[-3000:]
    assert wait_until(lambda: decisions(two.one) == decisions(two.two), 30)


def test_status_shows_the_peer(two: Pair) -> None:
    has = f"has generation {generation(two.one)}, as here"
    assert wait_until(lambda: has in two.one.cli("status").stdout, 60), two.one.sent()
    assert "gets an archive" in two.two.cli("status").stdout
