"""Histories against brute force: who runs when, and what changes."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from sar_agent.demand.endpoints import mix_of_host_sets
from sar_agent.fabric.spec import load_fabric
from sar_lab.history import HistoryBuilder, JobHistory, place_history

FABRIC = load_fabric("xgft:2;3,3;1,2")
NAMES = [*FABRIC.hosts, "elsewhere"]
JOBS = st.lists(
    st.tuples(
        st.integers(-5, 20),
        st.one_of(st.integers(-5, 25), st.just(inf)),
        st.lists(st.sampled_from(NAMES), max_size=5),
    ),
    max_size=25,
)
Rows = list[tuple[float, float, list[str]]]


def history_of(rows: Rows) -> tuple[JobHistory, dict[str, tuple[float, float, frozenset[str]]]]:
    """The history and, by id, what can have run."""
    builder = HistoryBuilder("h")
    builder.add("anchor", 0.0, 1.0, ["n001"])
    kept = {"anchor": (0.0, 1.0, frozenset({"n001"}))}
    for i, (start, end, hosts) in enumerate(rows):
        builder.add(str(i), start, end, hosts)
        if hosts and end > start:
            kept[str(i)] = (start, end, frozenset(hosts))
    return builder.build(), kept


@given(JOBS)
def test_every_job_is_there_or_counted_and_runs_when_it_runs(rows: Rows) -> None:
    history, kept = history_of(rows)
    assert set(history.ids) == set(kept)
    assert history.jobs + sum(left.count for left in history.left_out) == len(rows) + 1
    placed = place_history(history, FABRIC)
    running: set[int] = set()
    moments = []
    for change in history.changes():
        moments.append(change.time)
        assert set(change.ended.tolist()) <= running
        running = running - set(change.ended.tolist()) | set(change.started.tolist())
        wanted = {id for id, (a, b, _) in kept.items() if a <= change.time < b}
        assert {history.ids[j] for j in running} == wanted
        assert sorted(running) == history.running(change.time).tolist()
        mix = mix_of_host_sets(FABRIC, [kept[id][2] for id in wanted])
        assert placed.mix_at(change.time) == mix
    ends = {b for _, b, _ in kept.values() if b < inf}
    assert moments == sorted({a for a, _, _ in kept.values()} | ends)
