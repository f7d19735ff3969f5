"""The rank program, built with ASan and UBSan, on loopback: what it says, and what it refuses."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sar_agent.jobs.model import make_job
from sar_lab.emulate import runner
from sar_lab.emulate.phases import Place, Program, program_of, rank_texts
from sar_lab.emulate.runner import JobToRun, run_jobs
from sar_lab.live.process import free_port

SOURCE = Path(runner.__file__).with_name("ranks.c")
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1", "-g"]
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    binary = tmp_path_factory.mktemp("ranks") / "ranks"
    subprocess.run(["gcc", *FLAGS, *SANITIZE, "-o", binary, SOURCE], check=True)
    return binary


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    first = free_port()
    monkeypatch.setattr(runner, "_FIRST_PORT", first)
    yield first


def on_loopback(pattern: str, ranks: int) -> JobToRun:
    """Each rank has an address of 127/8, as each has one of a host in a fabric."""
    program = program_of(make_job("1", range(ranks)), pattern, 200_000)
    return JobToRun(("-",) * ranks, tuple(f"127.0.1.{r + 1}" for r in range(ranks)), program)


@pytest.mark.parametrize(
    ("pattern", "size"), [("at-once", 5), ("ring", 2), ("double-tree", 6), ("pairwise", 7)]
)
def test_ranks_end_under_the_sanitizers(ranks: Path, port: int, pattern: str, size: int) -> None:
    run = run_jobs(ranks, [on_loopback(pattern, size)], 60)
    assert not run.lost
    assert len(run.seconds) == 1 and run.seconds[0] > 0


def test_the_default_flags_compile_without_a_warning() -> None:
    with runner.ranks_program() as program:
        assert subprocess.run([program], capture_output=True).returncode == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no end"),
        ("end\n", "`end` is not understood"),
        ("rank 0 127.0.0.1 70000\n", "is no address"),
        ("rank 0 127.0.0.1 7000\npeer 0 127.0.0.1 7000\n", "one peer too many"),
        ("rank 0 127.0.0.1 7000\nstep\nout 3 10\n", "rank 3 is no peer"),
        ("rank 0 127.0.0.1 7000\nout 0 10\n", "`out 0 10` is not understood"),
        ("rank 0 127.0.0.1 7000 extra\n", "is not understood"),
    ],
)
def test_bad_phases_are_refused_in_one_sentence(ranks: Path, text: str, said: str) -> None:
    done = subprocess.run([ranks, "-"], input=text, text=True, capture_output=True)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def stand_in(folder: Path, binary: Path, body: str) -> Path:
    """A program instead of the ranks: a shell script."""
    script = folder / "ranks.sh"
    script.write_text(f"#!/bin/sh\nBINARY={binary}\n{body}\n")
    script.chmod(0o755)
    return script


def test_a_lost_start_is_repeated(ranks: Path, port: int, tmp_path: Path) -> None:
    once = tmp_path / "once"
    body = f'mkdir {once} 2>/dev/null && exit 7\nexec "$BINARY" "$@"'
    run = run_jobs(stand_in(tmp_path, ranks, body), [on_loopback("ring", 3)], 60)
    assert once.exists()
    assert not run.lost and len(run.seconds) == 1


def test_starts_that_fail_again_and_again_are_a_lost_run(ranks: Path, tmp_path: Path) -> None:
    script = stand_in(tmp_path, ranks, "echo 'no luck' >&2; exit 7")
    run = run_jobs(script, [on_loopback("ring", 3)], 60)
    assert run.seconds == ()
    assert "3 starts were lost" in run.lost and "no luck" in run.lost


def test_a_rank_that_ends_in_the_run_makes_it_a_lost_one(ranks: Path, tmp_path: Path) -> None:
    script = stand_in(tmp_path, ranks, "echo ready; sleep .2; echo 'I give up' >&2; exit 1")
    run = run_jobs(script, [on_loopback("ring", 3)], 60)
    assert "I give up" in run.lost


def test_ranks_that_hang_are_ended_and_make_the_run_a_lost_one(ranks: Path, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = stand_in(tmp_path, ranks, f"echo $$ >> {pids}; echo ready; exec sleep 1000")
    run = run_jobs(script, [on_loopback("ring", 3)], 0.5)
    assert "3 of 3 ranks gave no answer in time" in run.lost
    for pid in pids.read_text().split():
        assert not Path("/proc", pid).exists()


def test_a_rank_ends_by_itself_after_its_limit(ranks: Path) -> None:
    places: Sequence[Place] = [Place("127.0.0.1", free_port())] * 2
    text = rank_texts(Program(1, ({(0, 1): 10},)), places, 1)[0]
    done = subprocess.run([ranks, "-"], input=text, text=True, capture_output=True)
    assert done.returncode == -signal.SIGALRM
