"""A history through engines: the numbers, the pieces, what is left out, and what kill -9 leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from multiprocessing import active_children

import numpy as np
import pyarrow.parquet as pq
import pytest

from sar_agent.errors import InputError, Unavailable
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs.model import JobMix
from sar_agent.quality import measure
from sar_agent.routing import Options, load_engine
from sar_lab.history import HistoryBuilder, place_history
from sar_lab.replay.pools import AHEAD, here, on_cores
from sar_lab.replay.replay_plan import ReplayPlan
from sar_lab.replay.replay_run import run_replay
from sar_lab.replay.samples import samples_of
from sar_lab.replay.table1 import column, table1
from sar_lab.research.papers.registry import experiment
from sar_lab.research.papers.result_store import run_rows

FABRIC = "xgft:2;4,6;1,3"
RESULT = ("replay.parquet", "replay.json")


def hosts(*numbers):
    return [f"n{n:03d}" for n in numbers]


def make_history(name, rows):
    builder = HistoryBuilder(name)
    for row in rows:
        builder.add(*row)
    return builder.build()


def churn(seed=1, jobs=60):
    """Jobs of 2 … 8 hosts that come and go, a change every few minutes."""
    random = np.random.default_rng(seed)
    rows = []
    for i in range(jobs):
        start = 300.0 * i
        nodes = random.choice(24, random.integers(2, 9), replace=False) + 1
        rows.append((f"j{i}", start, start + float(random.integers(300, 6000)), hosts(*nodes)))
    return make_history("churn", rows)


def work_of(history, engines=("dfsssp", "sar"), every=600.0, chunk=5, **more):
    fabric = load_fabric(FABRIC)
    return ReplayPlan(fabric, samples_of(fabric, history, every), engines, chunk=chunk, **more)


def contents(folder):
    return {name: (folder / name).read_bytes() for name in RESULT}


@pytest.mark.long
def test_every_sample_has_the_numbers_that_measure_gives(tmp_path):
    history = churn()
    work = work_of(history, from_scratch=True)
    run_replay(history, work, tmp_path, here, "made by hand")
    whole = pq.read_table(tmp_path / "replay.parquet")
    assert len(whole) == 2 * len(work.samples.at)
    for engine in ("dfsssp", "sar"):
        before = None
        for m, at in enumerate(work.samples.at):
            mix = place_history(history, work.fabric).mix_at(at)  # straight from the history
            routes = load_engine(engine).route(work.fabric, mix, Options())
            found = measure(work.fabric, mix, routes)
            assert column(whole, engine, "effective_efi_max")[m] == found.effective_efi_max
            assert column(whole, engine, "dark_fiber_ratio")[m] == found.dark_fiber_ratio
            assert column(whole, engine, "load_max")[m] == found.load_max
            if mix.jobs:
                links = np.mean([job.links for job in found.jobs_detail])
                assert column(whole, engine, "job_links")[m] == pytest.approx(links)
                alone = [
                    measure(work.fabric, JobMix.of([job]), routes).effective_efi_max
                    for job in mix.jobs
                ]
                assert column(whole, engine, "job_efi_own")[m] == pytest.approx(np.mean(alone))
            changed = column(whole, engine, "entries_changed")[m]
            assert (
                np.isnan(changed) if before is None else (changed == routes.entries_changed(before))
            )
            before = routes


def test_table_1_by_hand():
    import pyarrow as pa

    nan = float("nan")
    rows = {
        "engine": ["sar"] * 3 + ["ftree"] * 3,
        "effective_efi_max": [10.0, 30.0, nan, 40.0, 20.0, 50.0],
        "job_efi_own": [5.0, 5.0, nan, 10.0, 5.0, 1.0],
        "dark_fiber_ratio": [0.1, 0.2, nan, 0.3, 0.1, 0.5],
        "job_links": [30.0, 20.0, nan, 20.0, 20.0, 9.0],
    }
    cells = {g.metric: g for g in table1(pa.table(rows), "sar", ["ftree"])}
    efi = cells["effective_efi_max"]
    assert (efi.largest, efi.largest_percent) == (30.0, 75.0)
    # The mean of the differences by the mean of the other's, not the mean of per cents.
    assert (efi.mean, efi.mean_percent) == (10.0, pytest.approx(100 / 3))
    assert (efi.smallest, efi.samples) == (-10.0, 2)
    dark = cells["dark_fiber_ratio"]
    assert (dark.largest, dark.mean) == (pytest.approx(20.0), pytest.approx(5.0))
    assert dark.largest_percent is None
    links = cells["job_links"]
    assert (links.largest, links.largest_percent, links.mean_percent) == (10.0, 50.0, 25.0)


def test_finished_pieces_are_not_computed_again(tmp_path):
    """A pool that fails after three pieces; the next is asked for the rest alone."""
    history = churn()
    work = work_of(history)

    def breaks(work, pieces):
        yield from here(work, pieces[:3])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_replay(history, work, tmp_path / "broken", breaks, "x")
    asked = []

    def rest(work, pieces):
        asked.extend(pieces)
        return here(work, pieces)

    run_replay(history, work, tmp_path / "broken", rest, "x")
    assert asked == work.pieces()[3:]
    run_replay(history, work, tmp_path / "whole", here, "x")
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


def test_another_replay_s_folder_is_refused(tmp_path):
    history = churn()
    run_replay(history, work_of(history), tmp_path, here, "x")
    before = contents(tmp_path)
    with pytest.raises(InputError, match="holds another replay"):
        run_replay(history, work_of(history, chunk=6), tmp_path, here, "x")
    run_replay(history, work_of(history), tmp_path, here, "x")  # the same again: all is there
    assert contents(tmp_path) == before


def _command(out, workers):
    words = (
        f"replay --fabric standin:tsubame --history synthetic:tsubame,days=1 --every 10m "
        f"--until 2024-01-01T06:00 --engine sar --engine sar-plus --chunk 2 --workers {workers}"
    )
    start = [sys.executable, "-c", "from sar_lab.cli import main; main()"]
    return [*start, *words.split(), "--out", str(out)]


@pytest.mark.long
def test_killed_and_resumed_is_identical(tmp_path):
    """kill -9 in the middle, twice; what comes out is what an undisturbed run writes."""
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    for least in (2, 5):
        process = subprocess.Popen(_command(broken, 2), stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 200
        while len(list(broken.glob("pieces/*.parquet"))) < least:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert not (broken / "replay.json").exists()
    (broken / "pieces" / ".sar-00000000.parquet.1").write_bytes(b"half a fi")  # as a kill leaves it
    subprocess.run(_command(broken, 2), check=True, capture_output=True)
    subprocess.run(_command(whole, 1), check=True, capture_output=True)
    assert contents(broken) == contents(whole)


@pytest.mark.long
def test_workers_do_not_outlive_a_killed_replay(tmp_path):
    process = subprocess.Popen(_command(tmp_path / "out", 2), stderr=subprocess.DEVNULL)
    while not list(tmp_path.glob("out/pieces/*.parquet")):
        assert process.poll() is None
        time.sleep(0.01)
    children = _children(process.pid)
    assert children
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 30
    while any(_alive(child) for child in children):
        assert time.monotonic() < deadline, "a worker outlived its parent"
        time.sleep(0.1)


def test_a_worker_that_dies_ends_the_run_with_a_sentence(tmp_path):
    work = work_of(churn(), chunk=1)
    pieces = work.pieces()
    assert len(pieces) > 2 * AHEAD + 2, "some are submitted later"
    rows = [(experiment(name), (0,)) for name in ("pftree-table3", *["sar-fig7"] * 3)]
    for ran in (on_cores(2)(work, pieces), run_rows(rows, tmp_path, judge=False, processes=2)):
        next(ran)
        active_children()[0].kill()
        with pytest.raises(Unavailable, match="a worker process died, perhaps for lack of memory"):
            list(ran)


def _children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:  # noqa: PTH123
        return [int(child) for child in file.read().split()]


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _cli(capsys, *words):
    """(exit code, standard error)"""
    from unittest.mock import patch

    from sar_lab.cli import main

    with patch.object(sys, "argv", ["sar-lab", "replay", *map(str, words)]):
        try:
            main()
        except SystemExit as end:
            return end.code or 0, capsys.readouterr().err
    raise AssertionError("main always exits")


def test_bad_input_is_one_sentence(tmp_path, capsys):
    trace = tmp_path / "trace.csv"
    trace.write_text(
        'job,start,end,nodelist\n1,2024-01-01T00:00:00,2024-01-01T02:00:00,"n[001,005]"\n'
    )
    good = ["--fabric", FABRIC, "--history", trace, "--workers", 1, "--engine", "sar"]
    for more, says in (
        (["--from", "yesterday"], "is not a date"),
        (["--from", "2025-01-01"], "has no job from"),
        (["--every", "0m"], "--every more than 0"),
        (["--engine", "nobody"], "no engine is called"),
        (["--dask", "slurm:many"], "does not give a number of jobs"),
    ):
        code, error = _cli(capsys, *good, *more, "--out", tmp_path / "out")
        assert (code, says in error, error.count("\n")) == (2, True, 1), error
    assert _cli(capsys, *good, "--every", "30m", "--json", "--out", tmp_path / "out")[0] == 0
    assert len(pq.read_table(tmp_path / "out" / "replay.parquet")) == 4
    code, error = _cli(capsys, *good, "--every", "15m", "--out", tmp_path / "out")
    assert code == 2 and "holds another replay" in error
