"""Emulated fabrics: routes are the tables, packets take their way, and nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from sar_agent.errors import CheckFailed, SarError
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.routes import NO_ROUTE
from sar_lab.emulate.emulation import Emulated
from sar_lab.emulate.namespaces import EmulatedFabric, require_emulation
from sar_lab.emulate.rank_runner import pattern_runner
from sar_lab.emulate.runner import ranks_program
from sar_lab.emulate.tables import WrongEntry, write_entry
from sar_lab.live.process import wait_until

pytestmark = pytest.mark.live
FABRIC = xgft_fabric("xgft:2;4,4;1,2")
RATE = 1e7
ACROSS = JobMix((make_job("1", [0, 5, 10, 15]),))


@pytest.fixture(autouse=True, scope="module")
def _possible() -> None:
    """As root in CI a machine that cannot emulate is an error, elsewhere a reason to skip."""
    try:
        require_emulation()
    except SarError as error:
        if os.environ.get("CI") == "true" and not os.geteuid():
            raise
        pytest.skip(str(error))


@pytest.fixture
def network() -> Iterator[EmulatedFabric]:
    with EmulatedFabric(FABRIC, RATE) as network:
        yield network


def tables(engine: str, seed: int = 0) -> Routes:
    return load_engine(engine).route(FABRIC, ACROSS, Options(seed=seed))


def test_routes_are_the_tables_also_after_a_change(network: EmulatedFabric) -> None:
    site = Emulated(network, ACROSS)
    for engine in ("ftree", "minhop", "ftree"):
        site.install(tables(engine))
        assert site.tables.wrong_entries() == []
    written = {
        engine: tables(engine).egress[0, : FABRIC.terminals] for engine in ("ftree", "minhop")
    }
    assert site.tables.install(tables("minhop")) == np.count_nonzero(
        written["ftree"] != written["minhop"]
    )


def test_a_planted_route_is_seen(network: EmulatedFabric) -> None:
    site = Emulated(network, ACROSS)
    site.install(tables("ftree"))
    leaf, far = int(FABRIC.terminal_switch[0]), 15
    right = int(site.tables.entries[far, leaf])
    up = FABRIC.channel_port[FABRIC.channel_source == leaf].tolist()
    wrong = next(port for port in up if port != right)
    write_entry(network, leaf, far, wrong)
    assert site.tables.wrong_entries() == [WrongEntry(leaf, far, wrong, right)]
    with pytest.raises(CheckFailed, match=f"by port {wrong} instead of port {right}"):
        site.tables.require_equal()
    write_entry(network, leaf, far, right)
    write_entry(network, leaf, 0, NO_ROUTE)
    with pytest.raises(CheckFailed, match="by no port instead of port"):
        site.tables.require_equal()


@pytest.mark.parametrize("engine", ["ftree", "minhop"])
def test_packets_take_the_way_of_the_tables(network: EmulatedFabric, engine: str) -> None:
    """Ports on the ways of the job's pairs send; all others send nothing."""
    size = 100_000
    site = Emulated(network, ACROSS)
    routes = tables(engine)
    site.install(routes)
    expected: dict[tuple[int, int], int] = {}
    for source in ACROSS.terminal.tolist():
        for target in set(ACROSS.terminal.tolist()) - {source}:
            at = int(FABRIC.terminal_switch[source])
            while True:
                port = int(routes.egress[0, target, at])
                expected[at, port] = expected.get((at, port), 0) + size // 3
                channel = int(FABRIC.channel_by_port[at, port])
                if channel < 0:
                    break
                at = int(FABRIC.channel_target[channel])
    before = [space.sent() for space in network.switches]
    with ranks_program() as program:
        run = pattern_runner(program, ACROSS, "at-once", size).run(site, 60)
    assert not run.lost
    for switch, space in enumerate(network.switches):
        for name, sent in space.sent().items():
            bytes_sent = sent - before[switch][name]
            port = int(name[1:])
            if (switch, port) in expected:
                assert bytes_sent >= expected[switch, port]
            else:
                assert bytes_sent == 0


def test_tables_are_replaced_while_ranks_run(network: EmulatedFabric) -> None:
    site = Emulated(network, ACROSS)
    site.install(tables("ftree"))
    with ranks_program() as program:
        run = pattern_runner(program, ACROSS, "pairwise", 500_000).run
        result = []
        thread = Thread(target=lambda: result.append(run(site, 60)))
        thread.start()
        for engine in ("minhop", "ftree") * 5:
            site.install(tables(engine))
        thread.join()
    assert not result[0].lost


COMMAND = [sys.executable, "-c", "from sar_lab.cli import main; main()", "emulate", "--fabric",
           "xgft:2;4,4;1,2", "--jobs", "blocks:8,8"]  # fmt: skip


def test_the_command_prints_a_row_for_each_program_and_tables() -> None:
    done = subprocess.run(
        [*COMMAND, "--run", "ring,at-once", "--rounds", "1", "--mbit", "8", "--bytes", "50000",
         "--tables", "ftree,minhop", "--json"],
        capture_output=True, text=True,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    assert [(row["run"], row["tables"]) for row in answer["rows"]] == [
        (run, engine) for run in ("ring", "at-once") for engine in ("ftree", "minhop")
    ]
    assert "no credits" in answer["is"] and answer["jobs"] == [8, 8]
    assert done.returncode == (0 if all(row["measured"] for row in answer["rows"]) else 1)
    assert all(row["idle"] >= 0.25 for row in answer["rows"] if row["measured"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_after_the_end(number: signal.Signals, tmp_path: Path) -> None:
    """Its ranks have ended, no namespace of them is left, and a second start works."""
    log = tmp_path / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [*COMMAND, "--run", "ring", "--tables", "ftree", "--bytes", "100000000"],
            stderr=output,
        )
    ranks: list[int] = []

    def all_run() -> bool:
        ranks[:] = children_of(process.pid)
        return len(ranks) == 16

    assert wait_until(all_run, 120), log.read_text()
    networks = {Path(f"/proc/{rank}/ns/net").stat().st_ino for rank in ranks}
    process.send_signal(number)
    process.wait(30)
    assert wait_until(lambda: not any(map(alive, ranks)), 30)
    assert not networks & networks_in_use()
    assert "Traceback" not in log.read_text()


def children_of(pid: int) -> list[int]:
    """Those that run the rank program in a network of their own."""
    own = Path("/proc/self/ns/net").stat().st_ino
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            if Path(f"/proc/{child}/ns/net").stat().st_ino != own:
                found.append(int(child))
        except OSError:
            continue
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def networks_in_use() -> set[int]:
    """The networks of all processes of this machine."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.add((entry / "ns/net").stat().st_ino)
            except OSError:
                continue
    return found
