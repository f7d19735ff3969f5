"""`sar-lab simulate-time`: the same answer for an engine, its folder and its export; bad input."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.worlds.command_line import TREE, lab_said, sar_agent, sar_lab

JOBS = ("--fabric", TREE, "--jobs", "mix:3")
RESULT_KEYS = {
    "engine", "time_mean", "time_median", "time_worst", "predicted_mean", "predicted_median",
    "predicted_worst", "jobs_detail",
}  # fmt: skip


@pytest.mark.parametrize("pattern", ["alltoall", "shift", "shift-free"])
def test_an_engine_its_folder_and_its_export_take_the_same_time(
    pattern: str, tmp_path: Path
) -> None:
    sar_agent("route", *JOBS, "--engine", "sar", "--out", tmp_path, "--export", "lfts")
    found = lab_said(
        "simulate-time", *JOBS, "--engine", "sar", "--routes", tmp_path,
        "--routes", tmp_path / "lfts.dump", "--pattern", pattern, "--json",
    )  # fmt: skip
    results = found["results"]
    assert isinstance(results, list)
    names = [result.pop("engine") for result in results]
    assert names == ["sar", str(tmp_path), str(tmp_path / "lfts.dump")]
    assert results[0] == results[1] == results[2]
    assert {"engine", *results[0]} == RESULT_KEYS
    assert len(results[0]["jobs_detail"]) == found["jobs"]
    assert found["pattern"] == pattern
    shown = sar_lab("simulate-time", *JOBS, "--engine", "sar", "--pattern", pattern).stdout
    assert f"{results[0]['time_worst']:.2f}" in shown
    assert f"{results[0]['predicted_worst']:.2f}" in shown


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--engine", "sar", "--pattern", "storm"], "alltoall, shift"),
        (["--engine", "magic"], "one of sar-plus, sar, ftree, dmodc"),
        ([], "--routes DIR"),
        (["--routes", "nowhere"], "nowhere"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(arguments: list[str], word: str) -> None:
    done = sar_lab("simulate-time", *JOBS, *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert word in done.stderr


@pytest.mark.parametrize("switch", ["S1-0", "S2-0"])
def test_routes_that_lead_nowhere_are_named(switch: str, tmp_path: Path) -> None:
    """One switch knows no host: it may be the last one before them or one on the way."""
    sar_agent("route", *JOBS, "--engine", "sar", "--out", tmp_path, "--export", "lfts")
    dump = tmp_path / "lfts.dump"
    tables = dump.read_text().split("Unicast")
    dump.write_text(
        "Unicast".join(
            re.sub(r"(?m)^(0x\w+) \d+ (.*Channel)", r"\1 255 \2", table)
            if f"({switch})" in table.partition("\n")[0]
            else table
            for table in tables
        )
    )
    done = sar_lab("simulate-time", *JOBS, "--routes", dump)
    assert done.returncode == 1, done.stdout
    assert "no route from" in done.stderr


@pytest.mark.parametrize(
    ("command", "arguments", "word"),
    [
        ("trace", ["--flowlet", "64KB"], "add --adaptive"),
        ("trace", ["--load-levels", "4"], "add --adaptive"),
        ("trace", ["--request-time", "5us"], "add --key or --keys"),
        ("trace", ["--jobs", "mix:1", "--place", "linear"], "leave one of them out"),
        ("trace", ["--engine", "random", "--key", "+x=2"], "add --routes DIR"),
        ("dot", ["--jobs", "mix:1"], "leave --fabric, --engine, --routes, --jobs"),
    ],
)
def test_no_option_is_ignored(
    command: str, arguments: list[str], word: str, tmp_path: Path
) -> None:
    sar_lab("make-trace", "alltoall", "--ranks", "4", "--out", tmp_path / "t.trace")
    start = {
        "trace": ("simulate-trace", "--fabric", TREE, "--trace", tmp_path / "t.trace"),
        "dot": ("count-congestion", "--orcs-dot", tmp_path / "none.dot"),
    }[command]
    done = sar_lab(*start, *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert word in done.stderr


def test_packets_take_no_less_than_the_hosts_links_and_agree_between_names(tmp_path: Path) -> None:
    sar_agent("route", *JOBS, "--engine", "sar", "--out", tmp_path)
    words = ("packets", *JOBS, "--engine", "sar", "--routes", tmp_path, "--bytes", "8192")
    found = lab_said(*words, "--json")
    first, again = found["results"]  # type: ignore[misc]
    assert {**first, "engine": ""} == {**again, "engine": ""}
    assert first["packet_hops"] > 0
    times = [each["time"] for each in first["jobs_detail"]]
    assert min(times) >= 1 and max(times) == first["time_worst"]
    assert f"sar: mean {first['time_mean']:.2f}, worst" in sar_lab(*words).stdout
    done = sar_lab("packets", *JOBS, "--engine", "sar", "--pattern", "magic")
    assert done.returncode == 2 and "unknown pattern 'magic'" in done.stderr
