"""`sar-lab hours`: spread and the cost of a failure by the hour, counted by hand."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worlds.command_line import sar_lab

TREE = "xgft:2;4,4;1,2"  # n001 to n004 on the first leaf switch, and so on
HISTORY = """job,start,end,nodelist
1,2024-01-01T00:10:00,2024-01-01T02:20:00,"n[001,005,009]"
2,2024-01-01T01:00:00,2024-01-01T02:10:00,"n[002-004]"
3,2024-01-02T00:00:00,2024-01-02T00:50:00,"n[006-008]"
4,2024-01-02T00:00:00,2024-01-02T00:50:00,"n[010,014]"
"""


def hours(folder: Path, *more: str) -> list[dict[str, float]]:
    (folder / "history.csv").write_text(HISTORY)
    result = sar_lab(
        "hours", "--fabric", TREE, "--history", folder / "history.csv", *more, "--json"
    )
    assert result.returncode == 0, result.stderr
    found: list[dict[str, float]] = json.loads(result.stdout)["hours"]
    return found


def test_hours_by_hand(tmp_path: Path) -> None:
    """At 00:30 job 1 runs on the first day, 3 and 4 on the second; at 01:30 jobs 1 and 2. Nothing
    runs at half past the other hours."""
    found = {int(each["hour"]): each for each in hours(tmp_path)}
    assert [each["moments"] for each in found.values()] == [2] + [1] * 23
    assert [found[0][key] for key in ("jobs", "spread", "extra")] == [1.0, 1.0, 1.5]
    assert [found[1][key] for key in ("jobs", "spread", "extra")] == [1.0, 1.0, 2.0]
    assert not any(found[2][key] for key in ("jobs", "spread", "extra", "lost_nodes", "hit"))


def test_what_a_failure_costs(tmp_path: Path) -> None:
    """The leaf switch of n001 to n004: job 1 has one of them, job 2 three, and only job 1 has
    routes over it."""
    found = {int(each["hour"]): each for each in hours(tmp_path, "--down", "S1-0")}
    costs = {hour: (found[hour]["lost_nodes"], found[hour]["hit"]) for hour in (0, 1, 2)}
    assert costs == {0: (0.5, 0.5), 1: (4.0, 1.0), 2: (0.0, 0.0)}


def test_a_part_of_the_record(tmp_path: Path) -> None:
    """The second day alone: jobs 3 and 4 in its first hour."""
    (day,) = hours(tmp_path, "--from", "2024-01-02")
    assert [day[key] for key in ("hour", "moments", "jobs")] == [0, 1, 1.0]


def test_a_history_without_nodes_and_one_of_another_cluster(tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text('job,start,end,nodelist\n1,2024-01-01T00:10:00,2024-01-01T02:20:00,""\n')
    other = tmp_path / "other.csv"
    other.write_text(HISTORY.replace("n[", "gpu["))
    for file, said in ((empty, "nodes"), (other, "one cluster")):
        result = sar_lab("hours", "--fabric", TREE, "--history", file)
        assert result.returncode == 2 and said in result.stderr, result.stderr


@pytest.fixture
def five_behind() -> Iterator[None]:
    """The reader's time zone is EST."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "EST5")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("five_behind")
def test_hours_are_those_of_the_reader_s_clock(tmp_path: Path) -> None:
    """One evening, as Slurm prints it and in seconds since 1970; 20:05 is 01:05 in UTC."""
    local, moment = ("2026-11-02T20:05:00", "2026-11-02T22:55:00"), (1793667900, 1793678100)
    zoned = ("2026-11-03T01:05:00+00:00", "2026-11-03T03:55:00+00:00")
    head, nodes = "job,start,end,nodelist\n", '"n[001,005,009]"\n'
    files = {
        f"{name}.csv": f"{head}1,{begin},{end},{nodes}"
        for name, (begin, end) in {"local": local, "unix": moment, "zoned": zoned}.items()
    }
    files["sacct.txt"] = f"JobID|Start|End|NodeList\n1|{local[0]}|{local[1]}|n[001,005,009]\n"
    job = {"job_id": 1, "time": dict(zip(("start", "end"), moment, strict=True))}
    job |= {"state": {"current": "COMPLETED"}, "nodes": "n[001,005,009]"}
    files["sacct.json"] = json.dumps({"jobs": [job]})
    for name, text in files.items():
        path = tmp_path / name
        path.write_text(text)
        result = sar_lab("hours", "--fabric", TREE, "--history", path, "--json")
        assert result.returncode == 0, result.stderr
        answer = json.loads(result.stdout)
        assert [each["hour"] for each in answer["hours"] if each["jobs"]] == [20, 21, 22], name
        own = name in ("local.csv", "sacct.txt")
        assert answer["clock"] == ("the clock of the record" if own else "your time zone, EST")
        assert f"hours are those of {answer['clock']}" in result.stderr
