"""Histories: built from records in any order, iterated as changes, placed on a fabric."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.spec import load_fabric
from sar_agent.lab.history import HistoryBuilder, place


def test_jobs_are_sorted_by_start_and_run_until_just_before_their_end() -> None:
    builder = HistoryBuilder("h")
    builder.add("2", 20.0, 30.0, ["b", "a", "b"])
    builder.add("1", 10.0, 20.0, ["a"])
    builder.add("3", 20.0, inf, ["c"])
    history = builder.build()
    assert history.ids == ("1", "2", "3")
    assert [history.hosts[h] for h in history.hosts_of(1)] == ["b", "a"]
    assert history.size.tolist() == [1, 2, 1]
    assert history.running(9.9).tolist() == []
    assert history.running(19.9).tolist() == [0]
    assert history.running(20.0).tolist() == [1, 2]
    assert history.running(1e12).tolist() == [2]
    assert history.span == (10.0, 30.0)


def test_changes_follow_what_runs_and_ends_come_first() -> None:
    draw = np.random.default_rng(1)
    builder = HistoryBuilder("h")
    for i in range(200):
        start = float(draw.integers(0, 50))
        builder.add(str(i), start, start + float(draw.integers(1, 20)), [f"n{draw.integers(9)}"])
    history = builder.build()
    running: set[int] = set()
    before = -inf
    for change in history.changes():
        assert change.time > before
        before = change.time
        assert running >= set(change.ended.tolist())
        running = running - set(change.ended.tolist()) | set(change.started.tolist())
        assert sorted(running) == history.running(change.time).tolist()
    assert not running


def test_what_cannot_have_run_is_left_out_and_counted() -> None:
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


def test_nothing_usable_is_an_error_that_says_why() -> None:
    builder = HistoryBuilder("h")
    builder.add("3", 5.0, 9.0, [])
    with pytest.raises(InputError, match="1 jobs without nodes: 3"):
        builder.build()


def test_only_some_jobs() -> None:
    builder = HistoryBuilder("h")
    for i, hosts in enumerate((["a"], ["a", "b"], ["c", "d", "e"])):
        builder.add(str(i), i, i + 5.0, hosts)
    history = builder.build()
    wide = history.only(history.size > 1)
    assert wide.ids == ("1", "2")
    assert [[wide.hosts[h] for h in wide.hosts_of(j)] for j in range(2)] == [
        ["a", "b"], ["c", "d", "e"]
    ]  # fmt: skip


def test_placed_on_a_fabric_only_jobs_over_two_leaves_are_in_the_mix() -> None:
    fabric = load_fabric("xgft:2;4,4;1,2")  # n001 … n004 on one leaf
    builder = HistoryBuilder("h")
    builder.add("inside", 0.0, 10.0, ["n001", "n002"])
    builder.add("wide", 5.0, 20.0, ["n003", "n005"])
    builder.add("odd", 5.0, 15.0, ["n004", "n006", "elsewhere"])
    builder.add("lost", 5.0, 15.0, ["nowhere"])
    placed = place(builder.build(), fabric)
    assert [job.id for job in placed.mix_at(6.0).jobs] == ["wide", "odd"]
    assert [job.id for job in placed.mix_at(15.0).jobs] == ["wide"]
    assert placed.change_times.tolist() == [5.0, 15.0, 20.0]
    assert [str(left) for left in placed.left_out] == [
        "2 hosts of jobs that are not in the fabric: elsewhere, nowhere",
        "1 jobs of which no host is in the fabric: lost",
    ]
