"""What an emulation computes without a network: phases, tables as routes, idle time, statistics."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from sar_agent.demand.endpoints import mix_of_spec
from sar_agent.errors import InputError, SarError, TooMany
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import Job, make_job
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.routes import NO_ROUTE
from sar_lab.emulate.benchmark import Benchmark
from sar_lab.emulate.emulation import Emulation, Timed
from sar_lab.emulate.idle import LEAST, Ticks, counts, idle_share, read_ticks
from sar_lab.emulate.namespaces import ideal_seconds, require_emulation, require_size
from sar_lab.emulate.phases import STEPS, Place, Program, program_of, rank_texts
from sar_lab.emulate.report import times_table
from sar_lab.emulate.runner import Run
from sar_lab.emulate.statistics import compare
from sar_lab.emulate.tables import port_entries, require_way
from tests.worlds.command_line import sar_lab

FABRIC = xgft_fabric("xgft:2;4,4;1,2")


def job(size: int) -> Job:
    return make_job("1", range(size))


def busiest(program: Program) -> int:
    """Bytes through the busiest port."""
    sent, received = Counter[int](), Counter[int]()
    for step in program.steps:
        for (source, destination), size in step.items():
            sent[source] += size * program.passes
            received[destination] += size * program.passes
    return max(*sent.values(), *received.values())


@pytest.mark.parametrize("ranks", [2, 3, 8, 13])
@pytest.mark.parametrize(
    "pattern",
    ["ring", "halo", "halo3d", "pairwise", "at-once", "recursive-doubling", "bruck",
     "bidirectional-ring", "double-tree"],
)  # fmt: skip
def test_all_patterns_move_the_same_bytes_through_the_busiest_port(
    pattern: str, ranks: int
) -> None:
    program = program_of(job(ranks), pattern, 1_000_000)
    assert busiest(program) == pytest.approx(1_000_000, rel=0.001)


def test_at_once_is_one_step_and_pairwise_is_many() -> None:
    once, pairs = (program_of(job(8), pattern, 70_000) for pattern in ("at-once", "pairwise"))
    assert (once.passes, len(once.steps), len(once.steps[0])) == (1, 1, 56)
    assert len(pairs.steps) == 7
    assert pairs.passes * 7 >= STEPS
    assert set(once.steps[0].values()) == {10_000}


def test_declared_traffic_is_run() -> None:
    declared = replace(job(8), traffic="shift:3")
    assert {(s, (s + 3) % 8) for s in range(8)} == set(program_of(declared, "ring", 1000).steps[0])


@pytest.mark.parametrize("pattern", ["nonsense", "transpose", "shift:9", "none"])
def test_a_pattern_that_does_not_fit_is_refused(pattern: str) -> None:
    with pytest.raises(InputError):
        program_of(job(8), pattern, 1000)


def test_a_rank_reads_its_own_messages_and_peers_only() -> None:
    program = Program(2, ({(0, 1): 10}, {(1, 2): 20, (2, 0): 30}))
    texts = rank_texts(program, [Place(f"10.0.0.{n}", 7) for n in range(3)], 60)
    assert texts[0] == (
        "rank 0 10.0.0.0 7\npeer 1 10.0.0.1 7\npeer 2 10.0.0.2 7\nlimit 60\npasses 2\n"
        "step\nout 1 10\nstep\nin 2 30\nend\n"
    )
    assert "step\nin 0 10\nstep\nout 2 20\nend" in texts[1]


def routes(engine: str = "minhop") -> Routes:
    return load_engine(engine).route(FABRIC, JobMix.of([]), Options())


def test_entries_are_the_ports_of_the_tables() -> None:
    entries = port_entries(FABRIC, routes())
    assert (entries == routes().egress[0, : FABRIC.terminals]).all()
    for t in range(FABRIC.terminals):
        assert entries[t, FABRIC.terminal_switch[t]] == FABRIC.terminal_switch_port[t]


def test_an_entry_without_a_cable_is_no_route() -> None:
    down = FABRIC.with_links_down(channels=[0], terminals=[2])
    entries = port_entries(down, routes())
    switch, port = int(FABRIC.channel_source[0]), int(FABRIC.channel_port[0])
    assert port in routes().egress[0, : FABRIC.terminals, switch]
    assert port not in entries[:, switch]
    assert (entries[2] == NO_ROUTE).all()


def test_a_table_that_leads_nowhere_is_refused_with_its_name() -> None:
    egress = routes().egress.copy()
    far = next(t for t in range(FABRIC.terminals) if FABRIC.terminal_switch[t])
    egress[0, far, FABRIC.terminal_switch[0]] = NO_ROUTE
    with pytest.raises(InputError, match=r"tables mine: from switch .*no route"):
        require_way(FABRIC, replace(routes(), egress=egress), "mine")
    require_way(FABRIC, routes(), "mine")


def test_too_many_hosts_are_refused() -> None:
    with pytest.raises(TooMany, match="11664 host ports"):
        require_size(xgft_fabric("xgft:3;18,18,36;1,18,18"))


def test_without_root_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(SarError, match="needs root: run it as root"):
        require_emulation()


def test_without_pyroute2_one_sentence_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setitem(sys.modules, "pyroute2", None)
    with pytest.raises(SarError, match="Debian's python3-pyroute2"):
        require_emulation()


def test_ideal_time_counts_headers() -> None:
    assert ideal_seconds(1448, 8e6) == pytest.approx(1514 / 1e6)


STAT = "cpu  10 1 5 {idle} {iowait} 2 3 {steal} 7 0\ncpu0 1 1 1 1\n"


def test_idle_share_counts_waiting_for_disks_but_not_what_a_hypervisor_took() -> None:
    before = read_ticks(STAT.format(idle=100, iowait=10, steal=0))
    assert idle_share(before, read_ticks(STAT.format(idle=120, iowait=15, steal=75))) == 0.25
    assert idle_share(before, before) == 0.0
    assert (before.idle, before.total) == (110, 131)


def test_a_share_below_the_least_does_not_count() -> None:
    assert counts(LEAST) and not counts(LEAST - 0.001)
    assert read_ticks() >= Ticks(0, 1)


def test_tables_are_compared_within_rounds() -> None:
    found = compare({"a": {1: 1.0, 2: 2.0, 3: 4.0}, "b": {1: 2.0, 3: 8.0, 4: 100.0}})
    assert found["a"].ratio is None
    ratio = found["b"].ratio
    assert ratio and (ratio.samples, ratio.median, ratio.low, ratio.high) == (2, 2.0, 2.0, 2.0)
    assert not found["b"].differs  # two rounds say nothing
    assert found["b"].values == (2.0, 8.0, 100.0)
    five = {n: 1.0 + n / 100 for n in range(5)}
    assert compare({"a": five, "b": {n: v / 2 for n, v in five.items()}})["b"].differs


class StandIn:
    """An emulated fabric whose machine is idle once cables are slow enough."""

    def __init__(self, rate: float, idle_from: float) -> None:
        self.rate, self.idle_from = rate, idle_from
        self.network = self

    def set_rate(self, rate: float) -> None:
        self.rate = rate

    def install(self, tables: Routes) -> None:
        pass


def emulation(rounds: int = 2, lost: str = "") -> Emulation:
    def run(site: StandIn, seconds: float) -> Run:
        share = 0.5 if site.rate <= site.idle_from else 0.1
        return Run((), share, lost=lost) if lost else Run((1e6 / site.rate, 3e6 / site.rate), share)

    mix = mix_of_spec("mix:1", FABRIC)
    tables = {"a": routes(), "b": routes()}
    return Emulation(FABRIC, mix, tables, {"ring": Timed(run, 1000)}, rounds, lambda line: None)  # type: ignore[arg-type]


@pytest.mark.parametrize("halvings", range(4))
def test_the_rate_is_halved_until_enough_is_idle(halvings: int) -> None:
    site, whole = StandIn(8e6, 8e6 / 2**halvings), emulation()
    whole.run(site)  # type: ignore[arg-type]
    [program] = whole.measured
    assert (program.rate, program.busy) == (8e6 / 2**halvings, False)
    assert all(list(of_round) == [1, 2] for of_round in program.runs.values())
    assert all(row["measured"] and row["idle"] == 0.5 for row in whole.rows())


def test_a_busy_machine_is_not_measured_after_three_halvings() -> None:
    site, whole = StandIn(8e6, 1.0), emulation()
    whole.run(site)  # type: ignore[arg-type]
    assert whole.measured[0].busy
    assert whole.measured[0].rate == 1e6
    rows = list(whole.rows())
    assert len(rows) == 2
    assert not any(row["measured"] for row in rows)


def test_a_lost_run_is_a_row_without_a_time() -> None:
    site, whole = StandIn(8e6, 8e6), emulation(lost="job 1, rank 2 has gone")
    whole.run(site)  # type: ignore[arg-type]
    row = next(whole.rows())
    assert not row["measured"] and row["time"] is None
    assert row["lost"] == [f"round {n}: job 1, rank 2 has gone" for n in (1, 2)]


def test_jobs_are_compared_with_their_busiest_port() -> None:
    site, whole = StandIn(8e6, 8e6), emulation()
    whole.run(site)  # type: ignore[arg-type]
    ideal = ideal_seconds(1000, 8e6)
    row = next(whole.rows())
    assert row["job_times"] == pytest.approx([0.125 / ideal, 0.375 / ideal])
    assert row["time"]["median"] == pytest.approx(np.mean(row["job_times"]))


@pytest.mark.parametrize(
    ("script", "seconds", "said"),
    [
        ("echo boom >&2; exit 3", 60, "mine failed with exit code 3: boom"),
        ("sleep 1000", 0.2, "mine gave no answer within 0.2 s"),
    ],
)
def test_a_command_that_fails_is_called_by_its_name_not_by_its_launcher(
    script: str, seconds: float, said: str
) -> None:
    with pytest.raises(SarError, match=said):
        Benchmark.of("mine=prog").run(("sh", "-c", script), seconds, "")


def test_a_row_that_was_lost_shows_no_numbers() -> None:
    site, whole = StandIn(8e6, 8e6), emulation(lost="job 1, rank 2 has gone")
    whole.run(site)  # type: ignore[arg-type]
    table = times_table(whole)
    shown = {str(column.header): list(column.cells) for column in table.columns}
    assert shown["time"] == shown["over first"] == shown["spread"] == ["–", "–"]
    assert shown["remarks"][0] == "2 lost, round 1: job 1, rank 2 has gone"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--fabric", "xgft:2;4,4;1,2", "--jobs", "mix:1", "--run", "ring, halo, ring"),
            "a name is given twice in ring,halo,ring; give it once",
        ),
        ((), "nothing to emulate; give --fabric and --jobs, or --live"),
        (("--fabric", "xgft:2;4,4;1,2"), "nothing to emulate; give"),
        (("--live", "--jobs", "mix:1"), "--live has a fabric and jobs of its own"),
        (("--live", "--json"), "of the other options give only --mbit and --out"),
    ],
)
def test_the_loop_or_tables_to_compare(words: tuple[str, ...], said: str) -> None:
    """Neither is a guess: one sentence, and nothing is started."""
    done = sar_lab("emulate", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr and done.stderr.count("\n") == 1
