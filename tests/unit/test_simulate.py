"""`sar-agent simulate`: the same answer for an engine, its folder and its export; bad input."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.test_cli import TREE, said, sar_agent

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
    found = said(
        "simulate", *JOBS, "--engine", "sar", "--routes", tmp_path,
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
    shown = sar_agent("simulate", *JOBS, "--engine", "sar", "--pattern", pattern).stdout
    assert f"{results[0]['time_worst']:.2f}" in shown
    assert f"{results[0]['predicted_worst']:.2f}" in shown


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--engine", "sar", "--pattern", "storm"], "alltoall, shift"),
        (["--engine", "magic"], "colored, dfsssp"),
        ([], "--routes DIR"),
        (["--routes", "nowhere"], "nowhere"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(arguments: list[str], word: str) -> None:
    done = sar_agent("simulate", *JOBS, *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert word in done.stderr


def test_jobs_that_send_nothing_between_switches(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    jobs.write_text("n001 7\nn002 7\n")
    done = sar_agent("simulate", "--fabric", TREE, "--jobs", jobs, "--engine", "sar")
    assert done.returncode == 2
    assert "spans two leaf switches" in done.stderr


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
    done = sar_agent("simulate", *JOBS, "--routes", dump)
    assert done.returncode == 1, done.stdout
    assert "no route from" in done.stderr


CG = ("--fabric", "xgft:2;16,16;1,16", "--place", "linear")


def test_a_trace_on_tables_by_source_with_keys_and_led_by_a_peer(tmp_path: Path) -> None:
    trace = tmp_path / "cg"
    sar_agent("make-trace", "cgd128", "--out", trace)
    assert sar_agent("make-trace", "cgd128").stdout == trace.read_text()
    arguments = (
        "simulate", *CG, "--trace", trace, "--engine", "dmodk", "--engine", "smodk", "--keys",
        "nrk", "--adaptive", "--flowlet", "16KB", "--feedback", "5us",
    )  # fmt: skip
    found = said(*arguments, "--json")
    results = found["results"]
    assert isinstance(results, list) and found["jobs"] == 1
    slow = {each["engine"]: each["slowdown_worst"] for each in results}
    assert list(slow) == ["dmodk", "smodk", "adaptive (Conga-like)", "nrk"]
    assert [slow["dmodk"], slow["smodk"], slow["nrk"]] == pytest.approx([2.2, 2.2, 1])
    assert set(results[0]) == {
        "engine", "slowdown_mean", "slowdown_worst", "communication_worst", "seconds_worst",
        "jobs_detail",
    }  # fmt: skip
    shown = sar_agent(*arguments).stdout
    assert "2.20" in shown and "1.00" in shown


def test_keys_at_offsets_of_a_routes_folder(tmp_path: Path) -> None:
    """Two pairs that share a cable at offset 0; the key's phase goes by offset 1 and shares one,
    too; half of them could not be told apart, so the answers are the same but for the name."""
    trace = tmp_path / "two"
    trace.write_text(
        "trace 1\njob A 4\nrequest k\nsend 0 2 1MB\nsend 1 3 1MB\nbarrier\ndone\n"
        "send 0 2 1MB\nsend 1 3 1MB\n"
    )
    fabric = ("--fabric", "xgft:2;2,2;1,2")
    sar_agent(
        "route", *fabric, "--jobs", "mix:1", "--engine", "smodk", "--lmc", "1", "--out", tmp_path
    )
    arguments = ("simulate", *fabric, "--trace", trace, "--place", "linear", "--routes", tmp_path)
    found = said(*arguments, "--key", "k=1", "--request-time", "1ms", "--json")["results"]
    plain = said(*arguments, "--json")["results"]
    assert isinstance(found, list) and isinstance(plain, list)
    both = [each[0]["slowdown_worst"] for each in (found, plain)]
    assert both == pytest.approx([2, 2])
    assert found[0]["seconds_worst"] == pytest.approx(plain[0]["seconds_worst"] + 1e-3)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--engine", "dmodk", "--metric", "sum_max_cong"], "leave --orcs-dot"),
        ([], "or --adaptive"),
        (["--engine", "dmodk", "--key", "k"], "--key +x=2"),
        (["--engine", "dmodk", "--key", "k=7"], "0 … 0"),
        (["--keys", "ark", "--engine", "smodk"], "--engine dmodk"),
        (["--keys", "kark", "--engine", "dmodk"], "ark, nrk"),
        (["--adaptive", "--flowlet", "big"], "64KB"),
        (["--adaptive", "--feedback", "0us"], "20us"),
        (["--engine", "dmodk", "--request-time", "long"], "20us"),
        (["--engine", "dmodk", "--jobs", "mix:1"], "--place random"),
    ],
)
def test_what_a_trace_cannot_be_played_on(arguments: list[str], word: str, tmp_path: Path) -> None:
    trace = tmp_path / "t"
    trace.write_text("trace 1\njob A 2\nsend 0 1 1KB\n")
    done = sar_agent("simulate", "--fabric", TREE, "--trace", trace, *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert word in done.stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["storm"], "cartesian, cgd128"),
        (["cartesian", "--utilization", "0"], "0.1 at 40"),
        (["cartesian", "--size", "256KB-4KB"], "4KB-256KB"),
        (["cartesian", "--ranks", "1"], "--ranks 2"),
        (["wrf256", "--ranks", "8"], "leave --ranks out"),
    ],
)
def test_what_no_trace_can_be_made_of(arguments: list[str], word: str) -> None:
    done = sar_agent("make-trace", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert word in done.stderr
