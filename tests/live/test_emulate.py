"""Emulated fabrics: routes are the tables, packets take their way, and nothing is left behind."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from sar_agent.errors import CheckFailed
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.routes import NO_ROUTE
from sar_lab.emulate.benchmark import Benchmark
from sar_lab.emulate.command_runner import command_folder, command_runner
from sar_lab.emulate.emulation import Emulated
from sar_lab.emulate.namespaces import EmulatedFabric
from sar_lab.emulate.rank_runner import pattern_runner
from sar_lab.emulate.runner import ranks_program
from sar_lab.emulate.tables import WrongEntry, write_entry
from sar_lab.live.process import wait_until
from tests.worlds.json_keys import differences
from tests.worlds.live.emulation import possible as possible

pytestmark = pytest.mark.live
FABRIC = xgft_fabric("xgft:2;4,4;1,2")
RATE = 1e7
ACROSS = JobMix((make_job("1", [0, 5, 10, 15]),))


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


def test_each_rank_of_a_command_is_in_its_own_host(network: EmulatedFabric) -> None:
    """The launcher here is a shell loop over what mpirun would call."""
    jobs = JobMix((make_job("1", [0, 5]), make_job("2", [10, 15])))
    loop = (
        'for host in $(echo $SAR_HOSTS | tr , " "); do $SAR_RSH $host '
        '"test \\$(hostname) = $host && ip -4 -o address show dev ib0"; done > $0/job$SAR_JOB; '
        "echo trial: $SAR_JOB s"
    )
    with tempfile.TemporaryDirectory() as folder, command_folder() as means:
        benchmark = Benchmark("loop", ("sh", "-c", loop, folder))
        run = command_runner(means, benchmark, 60).run(Emulated(network, jobs), 60)
        assert (run.lost, run.seconds) == ("", (1.0, 2.0))
        for job, terminals in ((1, (0, 5)), (2, (10, 15))):
            addresses = re.findall(r"inet (\S+)/32", Path(folder, f"job{job}").read_text())
            assert addresses == [network.address(t) for t in terminals]


@pytest.mark.parametrize(
    ("script", "said"),
    [("exit 3", "exit code 3"), ("sleep 1000", "no answer"), ("echo 1", "known")],
)
def test_a_command_without_a_time_is_a_lost_run(
    network: EmulatedFabric, script: str, said: str
) -> None:
    with command_folder() as means:
        benchmark = Benchmark("bad", ("sh", "-c", script))
        run = command_runner(means, benchmark, 0.5).run(Emulated(network, ACROSS), 60)
    assert run.seconds == ()
    assert "job 1" in run.lost and said in run.lost


@pytest.mark.parametrize(
    "command",
    [
        'lammps=sh -c "cd $SAR_FOLDER && mpirun lmp -var grid 6 -in lj.in"',
        pytest.param('fft=sh -c "sh $SAR_FOLDER/hpcc.sh MPIFFT"', marks=pytest.mark.long),
    ],
)
def test_known_programs_run_with_inputs_of_ours(command: str) -> None:
    """Real MPI: LAMMPS exchanges halos, the transform of HPCC is an all-to-all."""
    with EmulatedFabric(FABRIC, RATE, management=True) as network, command_folder() as means:
        site = Emulated(network, ACROSS)
        site.install(tables("ftree"))
        before = [host.sent()["ib0"] for host in network.hosts]
        run = command_runner(means, Benchmark.of(command), 300).run(site, 60)
        sent = [host.sent()["ib0"] - old for host, old in zip(network.hosts, before, strict=True)]
    assert not run.lost and run.seconds[0] > 0
    terminals = ACROSS.terminal.tolist()
    assert all((sent[t] > 20_000) == (t in terminals) for t in range(FABRIC.terminals)), sent


COMMAND = [sys.executable, "-c", "from sar_lab.cli import main; main()", "emulate", "--fabric",
           "xgft:2;4,4;1,2", "--jobs", "blocks:8,8"]  # fmt: skip


def test_the_command_prints_a_row_for_each_program_and_tables() -> None:
    done = subprocess.run(
        [*COMMAND, "--run", "ring,at-once", "--rounds", "1", "--mbit", "8", "--bytes", "50000",
         "--tables", "ftree,minhop", "--json"],
        capture_output=True, text=True,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    assert list(differences("emulate", answer)) == []
    assert [(row["run"], row["tables"]) for row in answer["rows"]] == [
        (run, engine) for run in ("ring", "at-once") for engine in ("ftree", "minhop")
    ]
    assert "no credits" in answer["is"] and answer["jobs"] == [8, 8]
    assert done.returncode == (0 if all(row["measured"] for row in answer["rows"]) else 1)
    assert all(row["idle"] >= 0.25 for row in answer["rows"] if row["measured"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize(
    ("run", "networks"), [("ring", 16), ("wait=sh -c '$SAR_RSH h1 sleep 1000; true'", 3)]
)
def test_nothing_is_left_after_the_end(
    run: str, networks: int, number: signal.Signals, tmp_path: Path
) -> None:
    """All processes in its namespaces have ended, and with them the namespaces."""
    log = tmp_path / "log"
    more = ("--tables", "ftree", "--bytes", "100000000")
    with log.open("w") as output:
        process = subprocess.Popen(
            # A shell starts what is in the background with SIGINT ignored, tests perhaps, too.
            ["env", "--default-signal=INT", *COMMAND, "--run", run, *more],
            stderr=output,
        )
    inside: dict[int, int] = {}

    def all_run() -> bool:
        inside.clear()
        inside.update(networks_below(process.pid))
        return len(set(inside.values())) >= networks or process.poll() is not None

    assert wait_until(all_run, 120) and process.poll() is None, log.read_text()
    process.send_signal(number)
    process.wait(30)
    assert wait_until(lambda: not any(map(alive, inside)), 30)
    # Other tests make networks meanwhile, and the kernel gives numbers of former ones again.
    assert wait_until(lambda: not set(inside.values()) & networks_in_use(), 120)
    assert "Traceback" not in log.read_text()


def networks_below(pid: int) -> dict[int, int]:
    """The networks of all descendants that are not in this one."""
    own, parent, found = Path("/proc/self/ns/net").stat().st_ino, {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                after = (entry / "stat").read_text().rpartition(")")[2].split()
                parent[int(entry.name)] = int(after[1])
                if (network := (entry / "ns/net").stat().st_ino) != own:
                    found[int(entry.name)] = network
            except OSError:
                continue

    def is_below(child: int) -> bool:
        while child in parent and child != pid:
            child = parent[child]
        return child == pid

    return {child: network for child, network in found.items() if is_below(child)}


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
