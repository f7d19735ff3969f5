"""Histories: built from records in any order, iterated as changes, placed on a fabric."""

from __future__ import annotations

import json
import os
import tarfile
import time
from math import inf
from pathlib import Path

import numpy as np
import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.spec import load_fabric
from sar_lab.history import HistoryBuilder, place_history, read_history
from sar_lab.history.job_history import JobHistory
from sar_lab.history.window import within
from tests.worlds.job_texts import SACCT


def test_impossible_jobs_are_left_out_and_counted() -> None:
    builder = HistoryBuilder("h")
    builder.add("1", 5.0, 9.0, ["a"])
    builder.add("1", 5.0, 9.0, ["a"])
    builder.add("2", 5.0, 4.0, ["a"])
    builder.add("3", 5.0, 9.0, [])
    builder.add("4", 5.0, 5.0, ["a"])
    history = builder.build()
    assert history.ids == ("1",)
    assert [(left.count, left.examples) for left in history.left_out] == [
        (1, ("1",)), (1, ("2",)), (1, ("3",)), (1, ("4",))
    ]  # fmt: skip
    assert "a clock jumped" in str(history.left_out[1])


def test_placed_on_a_fabric_only_jobs_over_two_leaves_are_in_the_mix() -> None:
    fabric = load_fabric("xgft:2;4,4;1,2")  # n001 … n004 on one leaf
    builder = HistoryBuilder("h")
    builder.add("inside", 0.0, 10.0, ["n001", "n002"])
    builder.add("wide", 5.0, 20.0, ["n003", "n005"])
    builder.add("odd", 5.0, 15.0, ["n004", "n006", "elsewhere"])
    builder.add("lost", 5.0, 15.0, ["nowhere"])
    placed = place_history(builder.build(), fabric)
    assert [job.id for job in placed.mix_at(6.0).jobs] == ["wide", "odd"]
    assert [job.id for job in placed.mix_at(15.0).jobs] == ["wide"]
    assert placed.change_times.tolist() == [5.0, 15.0, 20.0]
    assert [str(left) for left in placed.left_out] == [
        "2 hosts of jobs that are not in the fabric: elsewhere, nowhere",
        "jobs of which no host is in the fabric: lost",
    ]


DAY = 86400.0


def ten_days(*odd: tuple[str, float, float]) -> JobHistory:
    """Four jobs on each of ten days from day 1000, and others (id, first and last day)."""
    builder = HistoryBuilder("h")
    for day in range(1000, 1010):
        for n in range(4):
            builder.add(f"{day}.{n}", (day + 0.3) * DAY, (day + 0.8) * DAY, [f"n{n}", f"m{n}"])
    for id, first, last in odd:
        builder.add(id, first * DAY, last * DAY, ["n0", "n1"])
    return builder.build()


@pytest.mark.parametrize(
    ("first", "last"),
    [(300.0, inf), (300.0, 1005.0), (300.0, 300.5), (1002.0, 9000.0), (9000.0, 9001.0)],
)
def test_a_record_far_from_all_others_is_named_and_set_apart(first: float, last: float) -> None:
    history = ten_days(("900", first, last), ("901", first, last))
    assert history.jobs == 40 and not {"900", "901"} & set(history.ids)
    (left,) = history.left_out
    assert left.examples == ("900", "901") and "runawayjobs" in left.reason
    assert history.bulk == (1000.3 * DAY, 1009.8 * DAY)


def test_long_jobs_are_kept_and_do_not_stretch_what_is_sampled() -> None:
    """A job that began before `sacct -S`, and one that ends after the last start."""
    history = ten_days(("early", 990.0, 1004.0), ("late", 1004.0, 1020.0), ("runs", 995.0, inf))
    assert history.jobs == 43 and history.left_out == ()
    assert history.span == (990.0 * DAY, 1020.0 * DAY)
    assert history.bulk == (1000.3 * DAY, 1009.8 * DAY)


def test_a_window_cuts_jobs_at_both_sides() -> None:
    """Dates by the clock of the record; all of the window is sampled, and no more."""
    history = ten_days(("long", 990.0, inf))
    day = f"{history.clock(1003 * DAY):%Y-%m-%d}"
    part = within(history, f"{day}T12:00", f"{history.clock(1005 * DAY):%Y-%m-%d}")
    assert part.ids == ("long", *(f"{d}.{n}" for d in (1003, 1004) for n in range(4)))
    assert part.bulk == part.span == (1003.5 * DAY, 1005 * DAY)
    assert part.start.min() == 1003.5 * DAY and part.end.max() == 1005 * DAY
    assert within(history, None, None) is history
    assert within(history, day, None).bulk == (1003 * DAY, history.bulk[1])
    for begin, until, said in (
        ("1980-01-01", None, r"no job from 1980-01-01 00:00"),
        (day, day, r"it covers from 1972-09-17 00:00 to 1972-10-06 19:12 \(the clock of the rec"),
        ("monday", None, "--from monday is not a date"),
    ):
        with pytest.raises(InputError, match=said):
            within(history, begin, until)


def test_one_line_in_seconds_since_1970_moves_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five hours behind UTC: both jobs ran from 20:05; so did the third, whose end is a moment."""
    monkeypatch.setenv("TZ", "EST5")
    time.tzset()
    try:
        rows = ("2026-11-02T20:05:00|2026-11-02T22:55:00", "1793667900|1793678100")
        rows += ("2026-11-02T20:05:00|1793678100",)
        lines = [f"{id}|{times}|n{id}" for id, times in enumerate(rows)]
        text = "JobID|Start|End|NodeList\n" + "\n".join(lines)
        history = read_history(write(tmp_path / "sacct.txt", text))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert not history.unix
    assert {history.day_of(t) for t in history.start} == {"2026-11-02 20:05"}
    assert {history.day_of(t) for t in history.end} == {"2026-11-02 22:55"}
    assert history.remarks[0].startswith("1 record has seconds since 1970")


def test_a_burst_of_jobs_makes_no_others_far() -> None:
    builder = HistoryBuilder("h")
    for task in range(1000):
        builder.add(f"7_{task}", 1000.5 * DAY, 1000.6 * DAY, [f"n{task}"])
    for day in range(990, 1020):
        builder.add(str(day), day * DAY, (day + 0.9) * DAY, ["a", "b"])
    history = builder.build()
    assert (history.jobs, history.left_out) == (1030, ())


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_sacct_as_text_with_all_that_goes_wrong(tmp_path: Path) -> None:
    history = read_history(write(tmp_path / "sacct.txt", SACCT))
    assert history.ids == ("7", "8", "11")
    assert [len(history.hosts_of(j)) for j in range(3)] == [2, 2, 2]
    assert history.end[2] == inf
    assert history.remarks == ("1 job was still running when the record was made.",)
    left = {each.reason.split(" (")[0]: each.examples for each in history.left_out}
    assert left == {
        "records of job steps": ("7.batch",),
        "jobs that end before they start": ("9",),
        "jobs that never started": ("10",),
        "jobs that are over, but without an end time": ("12",),
        "jobs without nodes": ("13",),
        "jobs of 1970": ("14",),
        "lines that are truncated or not a record": ("line 12",),
    }


def test_sacct_json_whole_and_cut_in_the_middle(tmp_path: Path) -> None:
    jobs = [
        {
            "job_id": i,
            "array": {"job_id": 0, "task_id": None},
            "het": {"job_id": 0, "job_offset": None},
            "time": {"start": 100_000_000 + i, "end": {"set": True, "number": 100_000_100}},
            "state": {"current": ["COMPLETED"]},
            "nodes": "n[1-2]",
        }
        for i in (1, 2, 3)
    ]
    text = json.dumps({"meta": {}, "jobs": jobs})
    whole = read_history(write(tmp_path / "a.json", text))
    assert (whole.ids, whole.left_out) == (("1", "2", "3"), ())
    cut = read_history(write(tmp_path / "b.json", text[:-40]))
    assert cut.ids == ("1", "2")
    assert "truncated files" in str(cut.left_out[0])


def first_seen_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "jobs"
    folder.mkdir()
    seen = (
        ("1", 1000, "a b"),
        ("2", 1000, "c"),
        ("3", 2000, "b d"),
        ("4", 3000, "a"),
        ("5", 2000, ""),
    )
    for id, at, nodes in seen:
        os.utime(write(folder / f"{id}.txt", nodes.replace(" ", "\n")), (at, at))
    return folder


def test_without_end_times_the_next_job_on_a_node_bounds_it(tmp_path: Path) -> None:
    folder = first_seen_folder(tmp_path)
    history = read_history(folder)
    assert dict(zip(history.ids, history.end.tolist(), strict=True)) == {
        "1": 2000.0, "2": 3000.0, "3": 3000.0
    }  # fmt: skip
    assert {left.examples for left in history.left_out} == {("4",), ("5",)}
    assert "no end times" in history.remarks[0]
    with tarfile.open(tmp_path / "jobs.tar.gz", "w:gz") as archive:
        archive.add(folder, "jobs")
    packed = read_history(tmp_path / "jobs.tar.gz")
    assert (packed.ids, packed.end.tolist()) == (history.ids, history.end.tolist())


def test_an_archive_that_ends_in_the_middle(tmp_path: Path) -> None:
    names = np.random.default_rng(1).integers(0, 10**9, (40, 300))  # gzip cannot shrink it away
    with tarfile.open(tmp_path / "whole.tar.gz", "w:gz") as archive:
        for i, row in enumerate(names.tolist()):
            file = write(tmp_path / f"{i}.txt", "\n".join(f"n{n}" for n in row))
            os.utime(file, (1000 + i, 1000 + i))
            archive.add(file, f"jobs/{i}.txt")
    whole = (tmp_path / "whole.tar.gz").read_bytes()
    (tmp_path / "half.tar.gz").write_bytes(whole[: len(whole) // 2])
    history = read_history(tmp_path / "half.tar.gz")
    assert 10 < history.jobs < 30
    assert history.size.tolist()[:10] == [300] * 10
    assert any("truncated archives" in str(left) for left in history.left_out)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("n1 5\n", "format of this job history is unknown"),
        ("JobID|Start\n1|2\n", "no columns End, NodeList"),
        ('{"jobs": [{"job_id": 1, "job_state": "RUNNING"}]}', "squeue's JSON"),
        ("{}", 'has no list "jobs"'),
        ("job,start,end,nodelist\n", "no usable job"),
    ],
)
def test_other_files_are_refused(text: str, word: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=word):
        read_history(write(tmp_path / "file", text))


def test_a_history_without_nodes_names_the_column(tmp_path: Path) -> None:
    text = "JobID|State|Start|End|NodeList\n1|COMPLETED|2026-01-01T00:00:00|2026-01-01T02:00:00|\n"
    with pytest.raises(InputError, match="no job of the history has nodes; save the column NodeL"):
        read_history(write(tmp_path / "sacct.txt", text))
