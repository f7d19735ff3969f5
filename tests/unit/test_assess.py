"""`sar-agent assess`: its numbers are those of `measure`, its words follow them, and what could
not be used is named."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.demand.collectives import AT_ONCE, COLLECTIVES, PAIRWISE
from sar_agent.fabric import Fabric
from sar_agent.fabric.link_levels import channel_levels
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.routing import Options, load_engine
from sar_lab.assess.assess_page import TIMED
from sar_lab.assess.judgement import judge
from sar_lab.assess.over_time import MomentRating, RatingsOverTime
from sar_lab.assess.rate import Ratings, rate_all
from sar_lab.assess.site_data import SiteData, read_site_data
from sar_lab.assess.traffic_classes import traffic_classes
from sar_lab.history.leonardo import leonardo_stand_in
from tests.worlds.command_line import lab_said, said, sar_agent
from tests.worlds.strict_html import Strict

ROOT = Path(__file__).parents[2]
SPEC = "xgft:2;6,6;1,4"
SAME = ("--fabric", SPEC, "--jobs", "mix:3")
QUICK = ("--engine", "minhop", "--engine", "sar-plus")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], Path]:
    out = tmp_path_factory.mktemp("assess") / "new" / "folder"
    return said("assess", *SAME, "--out", out, "--json"), out


def test_the_numbers_are_those_of_measure(
    report: tuple[dict[str, object], Path], tmp_path: Path
) -> None:
    engines = {e["engine"]: e for e in report[0]["engines"]}  # type: ignore[attr-defined]
    assert list(engines) == ["minhop", "updn", "ftree", "dfsssp", "sar", "sar-plus"]
    for name, found in engines.items():
        said("route", *SAME, "--engine", name, "--out", tmp_path / name, "--json")
        measured = said("measure", *SAME, "--routes", tmp_path / name, "--json")
        # Bounds by price are bettered for so many seconds.
        same = [key for key in measured if not key.startswith("lower_bound")]
        assert {key: found[key] for key in same} == {key: measured[key] for key in same}
        assert found["check_passed"]
        assert found["efi_distribution"][-1][0] == measured["effective_efi_max"]
        assert sum(count for _, count in found["efi_distribution"]) == measured["channels"]
    minhop, plus = ("--routes", tmp_path / "minhop"), ("--routes", tmp_path / "sar-plus")
    check = said("check", "--fabric", SPEC, *plus, "--from", *minhop[1:], "--json")
    assert report[0]["before"]["engine"] == "minhop"  # type: ignore[index]
    assert engines["sar-plus"]["entries_changed"] == check["entries_changed"]
    assert json.loads((report[1] / "assess.json").read_text()).items() <= report[0].items()


def test_the_verdict_is_the_time_that_simulate_says(report: tuple[dict[str, object], Path]) -> None:
    found = report[0]
    verdict = found["verdict"]
    assert isinstance(verdict, dict)
    for kind, pattern in (("all_messages_at_once", "alltoall"), ("one_message_at_a_time", "shift")):
        times = []
        for name in (found["before"]["engine"], found["after"]):  # type: ignore[index]
            given = ("--engine", str(name), "--pattern", pattern)
            told = lab_said("simulate-time", *SAME, *given, "--json")
            jobs = told["results"][0]["jobs_detail"]  # type: ignore[index]
            times.append(np.mean([job["time"] for job in jobs]))
        change = verdict[kind]
        assert [change["before"], change["after"]] == pytest.approx(times)
        assert change["saved"] == pytest.approx(1 - times[1] / times[0])
        page = Strict((report[1] / "index.html").read_text())
        assert f"{change['before']:.2f}× → {change['after']:.2f}×" in " ".join(page.text.split())
    assert verdict["saved"] == pytest.approx(verdict["all_messages_at_once"]["saved"])


def test_the_page_holds_the_numbers_and_needs_nobody_else(
    report: tuple[dict[str, object], Path],
) -> None:
    text = (report[1] / "index.html").read_text()
    page = Strict(text)
    assert str(report[0]["verdict"]["sentence"]) in page.text  # type: ignore[index]
    for engine in report[0]["engines"]:  # type: ignore[attr-defined]
        assert f"{engine['load_time']:.2f}×" in page.text
        assert f"{engine['load_max']:.2f}" in page.text
        assert str(engine["effective_efi_max"]) in page.text
    assert "You gave no forwarding tables" in page.text
    assert "The jobs are synthetic" in page.text
    assert "://" not in text and "url(" not in text
    assert not any("src" in tag.split() for tag in text.split("<"))
    assert "prefers-color-scheme: dark" in text
    assert all('role="img" aria-label="' in tag for tag in text.split("<") if "viewBox" in tag
               and "aria-hidden" not in tag)  # fmt: skip


def test_today_is_the_dump_that_was_given(tmp_path: Path) -> None:
    said("route", *SAME, "--engine", "dfsssp", "--out", tmp_path, "--export", "lfts", "--json")
    given = ("--routes", tmp_path / "lfts.dump", "--no-simulate", *QUICK)
    found = said("assess", *SAME, *given, "--out", tmp_path / "o", "--json")
    measured = said("measure", *SAME, "--routes", tmp_path, "--json")
    before = found["before"]
    assert isinstance(before, dict)
    assert (before["engine"], found["before_assumed"]) == ("today", False)
    assert {key: before[key] for key in measured} == measured
    assert (before["time"], before["time_by"]) == (before["load_time"], "load")
    page = Strict((tmp_path / "o/index.html").read_text())
    assert "You gave no forwarding tables" not in page.text
    assert "The traffic was not simulated" in page.text


def given_of(fabric: Fabric, jobs: dict[str, list[str]], tmp_path: Path) -> SiteData:
    file = tmp_path / "map"
    file.write_text("".join(f"{host} {job}\n" for job, hosts in jobs.items() for host in hosts))
    return read_site_data(fabric, str(file), None, None, None)


@pytest.mark.parametrize(
    ("jobs", "kind", "word"),
    [
        ({"1": ["n001", "n002"], "2": ["n007", "n008"]}, "inside", "spans two switches"),
        ({"1": ["elsewhere1", "elsewhere2"]}, "unknown", "of one cluster"),
        ({}, "unknown", "No job in the list is running"),
        ({"1": ["n001", "n007"]}, "idle", "no link would be more than"),
    ],
)
def test_nothing_to_gain_is_said_plainly(
    jobs: dict[str, list[str]], kind: str, word: str, tmp_path: Path
) -> None:
    given_of(load_fabric(SPEC), jobs, tmp_path)
    done = sar_agent(
        "assess", "--fabric", SPEC, "--jobs", tmp_path / "map", *QUICK, "--out", tmp_path, "--json"
    )
    assert done.returncode == (kind == "unknown")
    found = json.loads(done.stdout)
    verdict = found["verdict"]
    assert isinstance(verdict, dict)
    assert (verdict["kind"], verdict["saved"]) == (kind, 0.0)
    assert word in verdict["why"]
    page = Strict((tmp_path / "index.html").read_text())
    assert verdict["sentence"] in page.text


def ratings_of(fabric: Fabric, given: SiteData) -> Ratings:
    """Simulated times that are those of the links, and collectives that no routes change."""
    ratings = rate_all(fabric, given.mix, None, ("minhop", "sar-plus"))
    before, after = ratings.before, ratings.after
    assert after is not None
    known = {"simulated": before.times, "simulated_phases": before.phase_times}
    before = replace(before, **known)  # type: ignore[arg-type]
    return replace(ratings, before=before, after=replace(after, measures=before.measures, **known))  # type: ignore[arg-type]


def test_adaptive_routing_leaves_a_gain_to_traffic_that_follows_the_tables() -> None:
    fabric = load_fabric(SPEC)
    given = read_site_data(fabric, "mix:3", None, None, None)
    told = judge(given, ratings_of(fabric, given), adaptive=True)
    assert (told.kind, told.saved) == ("adaptive", 0.0)
    assert "cannot state a gain" in told.why
    follows = [each.follows for each in traffic_classes(given.fabric, adaptive=True)]
    assert {"tables", "switches", "unknown"} == set(follows)
    hdr = replace(given.fabric, terminal_rate=np.full_like(given.fabric.terminal_rate, 200.0))
    edr = replace(given.fabric, terminal_rate=np.full_like(given.fabric.terminal_rate, 100.0))
    assert [each.follows for each in traffic_classes(hdr, adaptive=False)] == ["tables", "unknown"]
    assert [each.follows for each in traffic_classes(edr, adaptive=False)] == ["tables"]
    for network, adaptive, doubted in ((hdr, False, True), (edr, False, False), (hdr, True, False)):
        why = judge(replace(given, fabric=network), ratings_of(fabric, given), adaptive).why
        assert why.startswith("This holds only where adaptive routing is off: ") == doubted


def test_no_more_is_claimed_than_a_hundredth() -> None:
    fabric = load_fabric(SPEC)
    given = read_site_data(fabric, "mix:3", None, None, None)
    ratings = ratings_of(fabric, given)
    assert ratings.after is not None
    for share, phases, kind, sentence in (
        (1.0, 1.0, "same", "There is nothing to gain here."),
        (0.995, 1.005, "same", "There is nothing to gain here."),
        (0.97, 1.0, "little", "would spend 0 to 3% less time"),
        (0.97, 0.98, "little", "would spend 0 to 3% less time sending."),
        (0.8, 1.0, "gain", "Synthetic jobs on this network would spend 0 to 20% less"),
        (0.8, 0.9, "gain", "would spend 0 to 20% less time sending."),
        (0.995, 0.8, "gain", "would spend 0 to 20% less time sending."),
        (0.8, 0.8, "gain", "would spend 0 to 20% less time sending."),
        (0.8, 1.2, "mixed", "Programs that send one message at a time would take 20% longer to "
         "send; programs that send all messages at once would spend 20% less time sending."),
        (1.2, 0.8, "mixed", "Programs that send all messages at once would take 20% longer to "
         "send; programs that send one message at a time would spend 20% less time sending."),
        (1.0, 1.2, "worse", "Programs that send one message at a time would take 20% longer to "
         "send; no others would gain."),
        (1.1, 1.2, "worse", "Programs that send one message at a time would take 20% longer to "
         "send; no others would gain."),
    ):  # fmt: skip
        after = replace(
            ratings.after,
            simulated=tuple(t * share for t in ratings.before.times),
            simulated_phases=tuple(t * phases for t in ratings.before.phase_times),
        )
        told = judge(given, replace(ratings, after=after), adaptive=False)
        assert told.kind == kind
        assert sentence in told.sentence
        gains = kind in ("gain", "little", "mixed")
        assert told.saved == pytest.approx(max(0.0, 1 - share) if gains else 0.0)


def test_what_was_timed_stands_on_its_page() -> None:
    page = (ROOT / "sar_lab/research/pages/emulated.md").read_text()
    for what, correlation, slope in (
        ("ratios", "0.86", "0.78"), ("ratios, ring", "", "0.91"), ("ratios, at-once", "", "0.49")
    ):  # fmt: skip
        row = rf"^\| {what} \| contention \| {correlation or '[0-9.]+'} \| {slope} \|"
        assert re.search(row, page, re.MULTILINE)
        assert correlation in TIMED and slope in TIMED


def test_with_a_history_the_judgement_is_of_the_record() -> None:
    fabric = load_fabric(SPEC)
    given = replace(read_site_data(fabric, "mix:3", None, None, None), synthetic=False)
    ratings = ratings_of(fabric, given)
    moment = MomentRating(4, 2.0, 0.0, 3.0, 1.0, 1.0)
    before = (replace(moment, time=2.0, phase_time=1.5), replace(moment, time=4.0, phase_time=1.5))
    after = (replace(moment, time=2.0, phase_time=1.2), replace(moment, time=2.5, phase_time=1.2))
    course = RatingsOverTime((0.0, 1.0), ("", ""), (1, 1), before, after, "minhop", "sar-plus", 0)
    told = judge(given, ratings, False, course)
    assert told.sentence == "Your jobs would spend up to 25% less time sending over the record."
    assert told.saved == course.saved == pytest.approx(0.25)
    idle = replace(course, after=before)
    assert judge(given, ratings, False, idle).sentence == "There is nothing to gain here."
    worse = replace(course, before=after, after=before)
    assert "longer to send over the record; " in judge(given, ratings, False, worse).sentence


def test_jobs_that_get_slower_are_counted_where_the_mean_does_not() -> None:
    fabric = load_fabric(SPEC)
    given = read_site_data(fabric, "mix:3", None, None, None)
    ratings = ratings_of(fabric, given)
    assert ratings.after is not None
    before = ratings.before.phase_times
    assert len(before) > 1
    after = replace(
        ratings.after,
        simulated=tuple(t * 0.8 for t in ratings.before.times),
        simulated_phases=(before[0] * 0.5, *before[1:-1], before[-1] * 1.1),
    )
    told = judge(given, replace(ratings, after=after), adaptive=False)
    assert told.kind == "gain"
    said = f"Of {len(before)} jobs, some would take longer: pairwise 1 (by up to 10%)."
    assert said in told.why


def test_a_mean_counts_each_job_once_as_the_engine_and_the_metrics_do() -> None:
    fabric = load_fabric(SPEC)
    given = read_site_data(fabric, "mix:3", None, None, None)
    after = ratings_of(fabric, given).after
    assert after is not None and max(after.ports) == 1.0
    measures = after.measures
    assert len({job.terminals for job in measures.jobs_detail}) > 1
    for word in set(COLLECTIVES) - {AT_ONCE, PAIRWISE}:
        assert after.mean_time(word) == pytest.approx(measures.collectives[word].mean)
    assert after.load_time == pytest.approx(measures.load_time_mean)
    assert after.contention_time == pytest.approx(measures.phase_contention_mean)


def test_no_routes_shorten_a_wait_at_shared_hosts(tmp_path: Path) -> None:
    """Two jobs on the same two hosts, on different leaves: each gets half of the hosts' ports."""
    fabric = load_fabric(SPEC)
    given = given_of(fabric, {"1": ["n001", "n007"], "2": ["n001", "n007"]}, tmp_path)
    ratings = rate_all(fabric, given.mix, None, ("minhop", "sar-plus"))
    assert ratings.after is not None
    assert ratings.before.ports == (2.0, 2.0)
    for rated in (ratings.before, ratings.after):
        assert rated.times == pytest.approx((2.0, 2.0))
        assert rated.load_time == pytest.approx(2.0)
    told = judge(given, ratings, adaptive=False)
    assert told.kind == "same"
    assert "2 hosts run several jobs at once" in told.why


def test_an_engine_that_cannot_serve_says_why(tmp_path: Path) -> None:
    given = ("--fabric", "torus:5,hosts=1", "--jobs", "mix:1", "--engine", "ftree", *QUICK)
    found = said("assess", *given, "--out", tmp_path / "o", "--json")
    assert [e["engine"] for e in found["unserved"]] == ["ftree"]  # type: ignore[attr-defined]
    assert "ftree is not in the table" in Strict((tmp_path / "o/index.html").read_text()).text


SACCT = """JobID|Start|End|State|NodeList
1|2026-01-05T10:00:00|2026-01-05T14:00:00|COMPLETED|n[001-009]
2|2026-01-05T11:00:00|2026-01-05T13:00:00|COMPLETED|n[010-030]
3|2026-01-05T13:30:00|2026-01-05T12:00:00|COMPLETED|n[010-030]
4|2026-01-05T11:30:00|2026-01-05T12:00:00|COMPLETED|x[1-3]
5|2026-01-05T20:00:00|2026-01-05T21:00:00|COMPLETED|n[010-030]
6|2026-01-05T20:00:0
"""


def test_a_history_gives_a_moment_a_timeline_and_what_was_left_out(tmp_path: Path) -> None:
    (tmp_path / "sacct").write_text(SACCT)
    given = ("--history", tmp_path / "sacct", "--samples", "11", "--no-simulate", *QUICK)
    found = said("assess", "--fabric", SPEC, *given, "--out", tmp_path / "o", "--json")
    kind = found["verdict"]["kind"]  # type: ignore[index]
    assert kind == "mixed", "also where most of the time is idle: less at once, more in turn"
    history = found["history"]
    assert isinstance(history, dict)
    assert history["jobs"] == [1, 2, 2, 1, 1]
    assert history["idle"] == 6
    moments = zip(history["jobs"], (p["efi_max"] for p in history["before"]), strict=True)
    assert (found["multi_switch_jobs"], found["before"]["effective_efi_max"]) in moments  # type: ignore[index]
    left = {each["reason"].split(" (")[0]: each["count"] for each in found["left_out"]}  # type: ignore[attr-defined]
    assert left == {
        "jobs that end before they start": 1,
        "lines that are truncated or not a record": 1,
        "hosts of jobs that are not in the fabric": 3,
        "jobs of which no host is in the fabric": 1,
    }
    page = Strict((tmp_path / "o/index.html").read_text())
    for each in left:
        assert each in page.text
    # The same file by the other option.
    again = said(
        "assess", "--fabric", SPEC, "--jobs", *given[1:], "--out", tmp_path / "p", "--json"
    )
    assert again["history"] == history


def test_a_stand_in_is_called_one(tmp_path: Path) -> None:
    lines = [
        f"NODE {n:04} RACK 1 CELL {1 + n // 4} ROW 1 PARTITION 1  SWITCH {100 + n // 2}"
        for n in range(8)
    ]
    (tmp_path / "list").write_text("\n".join(lines) + "\n")
    fabric = leonardo_stand_in(tmp_path / "list")
    assert (fabric.terminals, len(fabric.leaves), fabric.switches) == (8, 4, 4 + 2 * 18)
    assert fabric.channels == 2 * (4 * 18 + 18)
    (tmp_path / "map").write_text("lrdn0000 1\nlrdn0005 1\n")
    given = ("--fabric", tmp_path / "list", "--jobs", tmp_path / "map", *QUICK)
    said("assess", *given, "--out", tmp_path / "o", "--json")
    assert (
        "cables between switches are made up"
        in Strict((tmp_path / "o/index.html").read_text()).text
    )


def test_topology_that_differs_is_told(tmp_path: Path) -> None:
    (tmp_path / "topology.conf").write_text(
        "SwitchName=a Nodes=n[001-005,007]\nSwitchName=b Nodes=n[006,008-036]\n"
        "SwitchName=r Switches=a,b\n"
    )
    found = said(
        "assess", *SAME, *QUICK, "--topology-conf", tmp_path / "topology.conf", "--out", tmp_path,
        "--json",
    )  # fmt: skip
    assert any('"a" is 2 switches' in line for line in found["topology"])  # type: ignore[attr-defined]


def test_a_fabric_of_one_switch_has_nothing_to_draw() -> None:
    fabric = load_fabric("xgft:1;3;1")
    ratings = rate_all(fabric, JobMix(()), None, ("minhop", "sar-plus"))
    assert channel_levels(fabric) == []
    assert ratings.before.time == 1.0


def counter_dumps(folder: Path, seconds: float) -> tuple[Path, Path]:
    """Two dumps of ibdiagnet2 between which each link carried a share of its load under minhop."""
    fabric = load_fabric(SPEC)
    mix = read_site_data(fabric, "mix:3", None, None, None).mix
    load = traffic_of(fabric, mix, load_engine("minhop").route(fabric, mix, Options())).load
    words = (load / load.max() / 2 * fabric.channel_rate * 1e9 / 8 / 4 * seconds).astype(np.int64)
    guid = fabric.switch_guid[fabric.channel_source]
    files = []
    for name, times in (("begin.pm", 1), ("end.pm", 2)):
        files.append(folder / name)
        files[-1].write_text(
            "".join(
                f"Port={fabric.channel_port[c]} Lid=0x1 GUID={int(guid[c]):#018x} Device=1 "
                f"Port Name=x\nport_xmit_data_extended={int(words[c]) * times:#x}\n"
                f"port_rcv_data_extended={int(words[fabric.channel_reverse[c]]) * times:#x}\n"
                for c in range(fabric.channels)
            )
        )
    return files[0], files[1]


def test_counters_give_the_measured_load_of_links(tmp_path: Path) -> None:
    begin, end = counter_dumps(tmp_path, 90.0)
    command = ("assess", *SAME, *QUICK, "--no-simulate", "--out", tmp_path / "out")
    given = ("--counters", begin, "--counters", end, "--counter-seconds", 90)
    found = said(*command, *given, "--json")["counted"]
    assert found["rank"] == pytest.approx(1.0)
    assert found["counted_max"] == pytest.approx(0.5, rel=1e-3)
    assert (found["known"], found["hot_links"], found["seconds"]) == (48, 0, 90.0)
    page = (tmp_path / "out/index.html").read_text()
    assert "What the links really carried" in page
    assert "is 1.00; 1 means" in page
    without = said(*command, "--json")
    assert without["counted"] is None
    assert "really carried" not in (tmp_path / "out/index.html").read_text()
    for files, why in (
        (("--counters", begin), "names 1 source; give it twice"),
        (
            ("--counters", end, "--counters", begin, "--counter-seconds", 90),
            "the counters decreased: they were cleared, or the dumps",
        ),
    ):
        run = sar_agent(*command, *files)
        assert run.returncode in (1, 2)
        assert why in run.stderr
