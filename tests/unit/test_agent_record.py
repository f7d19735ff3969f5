"""`assess --history` on the agent's own records: what its days would have brought."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import pytest

from sar_agent.agent.history import History, Row
from sar_agent.agent.job_days import JobDay, JobDays
from sar_lab.assess.agent_record import record_path, summarise_record
from sar_lab.assess.agent_record_page import render
from tests.worlds.agent_world import ROW
from tests.worlds.command_line import said, sar_agent
from tests.worlds.strict_html import Strict

MONDAY = date(2026, 11, 23).toordinal()
NOON = datetime(2026, 11, 23, 12).timestamp()
HOUR = 3600.0


def row(
    job: str, *, before: tuple[float, float], after: tuple[float, float], day: int = 0,
    hosts: int = 10, user: str = "alice", ours: bool = False, leaves: int = 2,
) -> JobDay:  # fmt: skip
    names = ("baseline", "in_force") if ours else ("in_force", "planned")
    found = JobDay(MONDAY + day, job, 0, ours, user=user, hosts=hosts, leaf_count=leaves)
    found.seconds, found.baseline = HOUR, "ftree"
    for tables, times in zip(names, (before, after), strict=True):
        found.add_time(tables, HOUR, *times)
    return found


def decision(day: int, reason: str, entries: int | None, result: str = "planned") -> Row:
    at = NOON + 86400 * day
    return replace(ROW, at=at, reason=reason, entries_changed=entries, result=result)


@pytest.fixture
def week(tmp_path: Path) -> Path:
    JobDays(tmp_path).keep(
        [
            row("1", before=(2.0, 1.5), after=(1.5, 1.2)),
            row("1", before=(2.0, 1.5), after=(1.5, 1.2), day=1),
            row("2", before=(1.0, 1.0), after=(1.0, 1.0), hosts=100, user="bob", day=1),
            row("3", before=(1.0, 1.0), after=(1.0, 1.0), leaves=1),
        ]
    )
    History(tmp_path).add(
        decision(0, "first", 500),
        decision(0, "jobs_changed", 12),
        decision(1, "jobs_changed", 8),
        decision(1, "jobs_changed", 0),
        decision(1, "jobs_changed", None, "failed"),
    )
    return tmp_path


def test_days_sizes_users_and_changes_are_added_up(week: Path) -> None:
    found = summarise_record(week / "history.sqlite")
    assert not found.live
    assert found.total.host_hours == pytest.approx(120)
    assert found.total.at_once.before == pytest.approx((10 * 2 + 10 * 2 + 100) / 120)
    assert found.total.at_once.after == pytest.approx((10 * 1.5 * 2 + 100) / 120)
    assert found.total.one_at_a_time.before == pytest.approx((10 * 1.5 * 2 + 100) / 120)
    assert [day.name for day in found.days] == ["2026-11-23", "2026-11-24"]
    assert [(day.changes, day.entries) for day in found.days] == [(1, 12), (1, 8)]
    assert (found.first_entries, found.total.changes, found.total.entries) == (500, 2, 20)
    assert [(size.name, size.jobs) for size in found.sizes] == [
        ("9 to 32 hosts", 1),
        ("33 to 128 hosts", 1),
    ]
    assert [user.name for user in found.users] == ["bob", "alice"]
    assert found.slowest[0].name == "1 alice"
    assert (found.better, found.worse) == ((1, 1), (0, 0))
    assert (found.all_jobs, found.inside, found.unknown) == (3, 1, 0)


@pytest.mark.parametrize(
    ("after", "ours", "sentence"),
    [
        ((1.5, 1.35), False, "Your jobs would have spent 10 to 25% less time sending."),
        ((1.5, 1.35), True, "Your jobs have spent 10 to 25% less time sending than under ftree."),
        ((2.0, 1.5), False, "There would have been nothing to gain."),
        ((1.5, 1.8), False, "Programs that send one message at a time would have taken 20% longer "
         "to send; those that send all messages at once, 25% less time."),
        ((2.2, 1.5), True, "Programs that send all messages at once have taken 10% longer to send "
         "than under ftree; those that send one message at a time, no less time."),
    ],
)  # fmt: skip
def test_the_sentence_begins_with_what_gets_slower(
    after: tuple[float, float], ours: bool, sentence: str, tmp_path: Path
) -> None:
    JobDays(tmp_path).keep([row("1", before=(2.0, 1.5), after=after, ours=ours)])
    found = summarise_record(tmp_path / "history.sqlite")
    assert found.sentence == sentence
    assert sentence in " ".join(Strict(render(found, "sar-agent assess")).text.split())


def test_after_going_live_only_those_days_count(week: Path) -> None:
    JobDays(week).keep([row("9", before=(2.0, 2.0), after=(1.0, 1.0), ours=True, day=2)])
    found = summarise_record(week / "history.sqlite")
    assert found.live and found.total.jobs == 1 and found.other_days == 2
    assert "2 days before the agent went live are left out" in render(found, "")


def test_the_live_page_says_the_same(week: Path) -> None:
    assert JobDays(week).saved() is None
    live = [
        row("5", before=(2.0, 1.5), after=(1.5, 1.2), day=2, ours=True),
        row("6", before=(1.0, 1.0), after=(1.2, 1.0), day=3, ours=True, hosts=100),
        row("7", before=(9.0, 9.0), after=(1.0, 1.0), day=3, ours=True, leaves=1),
    ]
    JobDays(week).keep(live)
    saved, total = JobDays(week).saved(), summarise_record(week / "history.sqlite").total
    assert saved and (saved.engine, saved.days) == ("ftree", 2)
    assert saved.at_once == pytest.approx(total.at_once.saved)
    assert saved.one_at_a_time == pytest.approx(total.one_at_a_time.saved)


def test_the_command_needs_no_fabric_and_says_the_same_everywhere(
    week: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    told = said("assess", "--history", week, "--out", out, "--json")
    assert told == json.loads((out / "assess.json").read_text()) | {"page": str(out / "index.html")}
    words = sar_agent("assess", "--history", week / "history.sqlite", "--out", out)
    assert words.returncode == 0, words.stderr
    assert words.stdout.splitlines()[0] == told["sentence"]
    assert "tables would have changed 2 times, 20 entries in all" in words.stdout
    page = " ".join(Strict((out / "index.html").read_text()).text.split())
    assert str(told["sentence"]) in page and "1 of 2 jobs would have been faster, 0 slower" in page


def test_a_record_without_both_times_is_one_sentence(tmp_path: Path) -> None:
    JobDays(tmp_path).keep([JobDay(MONDAY, "1", 0, False, hosts=4, leaf_count=2)])
    done = sar_agent("assess", "--history", tmp_path, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "has recorded 1 job of several hosts, but of none" in done.stderr
    assert "let it run for a day" in done.stderr


def test_other_histories_still_need_a_fabric(tmp_path: Path) -> None:
    assert record_path(tmp_path) is None
    done = sar_agent("assess", "--history", "docs/examples/history.csv", "--out", tmp_path)
    assert done.returncode == 2 and "no fabric was given; give --fabric FILE" in done.stderr
