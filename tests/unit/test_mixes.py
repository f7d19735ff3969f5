"""Made-up histories: the model's own moments, the scheduler's rules, the papers' marks."""

from __future__ import annotations

import numpy as np
import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.spec import load_fabric
from sar_agent.fabric.standins import ISLANDS
from sar_agent.fabric.tree import tree_levels
from sar_lab.mixes.backfill import run_queue
from sar_lab.mixes.lublin import SubmittedJobs, Workload, submit_jobs
from sar_lab.mixes.node_selection import first_fit, pieces
from sar_lab.mixes.synthetic_histories import BEGIN, DAY, synthetic_history
from sar_lab.research.papers.history_marks import marks_of


def test_model_keeps_its_shares():
    workload = Workload(largest=128)
    jobs = submit_jobs(workload, np.random.default_rng(1), 200 * DAY)
    n = len(jobs.nodes)
    assert n > 10_000
    assert (jobs.nodes == 1).mean() == pytest.approx(workload.serial, abs=0.015)
    power = np.bitwise_and(jobs.nodes, jobs.nodes - 1) == 0
    # A fractional size may round to a power of two as well: 2, 4 and so on.
    assert (power & (jobs.nodes > 1)).mean() > workload.power_of_two - 0.015
    assert jobs.nodes.min() >= 1 and jobs.nodes.max() == 128
    assert jobs.seconds.max() <= np.exp(12.0)
    # Larger jobs run longer: they are drawn less from the short gamma distribution.
    assert jobs.seconds[jobs.nodes > 32].mean() > 1.5 * jobs.seconds[jobs.nodes < 8].mean()


@pytest.mark.long
def test_daily_cycle():
    jobs = submit_jobs(Workload(largest=64), np.random.default_rng(2), 400 * DAY)
    hour = (jobs.arrival % DAY // 3600).astype(int)
    a_day = np.bincount(hour, minlength=24)
    assert a_day[12:16].sum() > 3 * a_day[2:6].sum()
    assert (np.diff(jobs.arrival) >= 0).all()


def _jobs(*rows):
    arrival, nodes, seconds = zip(*rows, strict=True)
    return SubmittedJobs(np.array(arrival, float), np.array(nodes), np.array(seconds, float))


def test_backfilling_delays_nobody():
    ran = run_queue(
        _jobs((0, 3, 100), (1, 4, 50), (2, 1, 99), (3, 1, 98), (4, 1, 97)), 4, first_fit
    )
    starts = {(len(r.nodes), r.end - r.start): r.start for r in ran}
    assert starts[4, 50] == 100  # the first in the queue, when all four nodes are free
    assert starts[1, 98] == 150  # would end at 101, so it must not start at 3 …
    assert starts[1, 97] == 150
    assert starts[1, 99] == 150


def test_backfilling_fills():
    ran = run_queue(_jobs((0, 3, 100), (1, 4, 50), (2, 1, 98)), 4, first_fit)
    assert [r.start for r in ran] == [0, 2, 100]


@pytest.mark.long
def test_no_node_is_held_twice():
    jobs = submit_jobs(Workload(largest=32, gap_times=0.05), np.random.default_rng(3), 3 * DAY)
    ran = run_queue(jobs, 40, pieces(np.random.default_rng(4), 3))
    assert len(ran) == len(jobs.nodes)
    last = np.zeros(40)
    for one in sorted(ran, key=lambda r: r.start):
        assert (last[one.nodes] <= one.start).all()
        last[one.nodes] = one.end
        assert len(np.unique(one.nodes)) == len(one.nodes)


def test_taurus_is_full_bisection_within_islands():
    fabric = load_fabric("standin:taurus")
    assert fabric.terminals == sum(ISLANDS) == 2014
    level = tree_levels(fabric)
    up = np.bincount(
        fabric.channel_source[level[fabric.channel_target] > level[fabric.channel_source]],
        minlength=fabric.switches,
    )
    assert (up[level == 0] == 18).all() and (fabric.terminals_at[level == 0] <= 18).all()
    to_director = np.array([name.startswith("D-line") for name in fabric.switch_name], bool)
    assert to_director[fabric.channel_target].sum() - 12 * 18 == 216  # its ports
    used = np.bincount(fabric.channel_source, minlength=fabric.switches) + fabric.terminals_at
    assert used.max() == 36


def test_tsubame_is_the_paper_s_tree():
    fabric = load_fabric("standin:tsubame")
    whole = load_fabric("xgft:3;18,18,5;1,18,18")
    assert fabric.terminals == 1408
    assert np.array_equal(fabric.channel_target, whole.channel_target)
    assert np.array_equal(fabric.channel_port, whole.channel_port)
    assert set(fabric.terminals_at[fabric.leaves]) == {15, 16}


@pytest.mark.long
@pytest.mark.parametrize("machine, least", [("taurus", 0.66), ("tsubame", 0.50)])
def test_marks_of_the_papers(machine, least):
    history = synthetic_history(f"synthetic:{machine},seed=1")
    assert "synthetic" in history.remarks[0]
    assert history.span[0] == BEGIN and history.span[1] <= BEGIN + 30 * DAY
    fabric = load_fabric(f"standin:{machine}")
    marks = marks_of(fabric, history, BEGIN, BEGIN + 30 * DAY)
    assert marks.multi_switch_share > least
    if machine == "taurus":
        seeds = [1, 2, 3, 4]
        means = [
            marks_of(
                fabric, synthetic_history(f"synthetic:taurus,seed={s}"), BEGIN, BEGIN + 30 * DAY
            ).changes_mean
            for s in seeds
        ]
        assert 11 <= np.mean(means) <= 17  # the paper: 14
        assert 6 <= marks.leaves_per_job <= 14


def test_one_spec_is_one_history():
    one, other = (synthetic_history("synthetic:taurus,seed=5,days=3") for _ in range(2))
    assert np.array_equal(one.start, other.start) and np.array_equal(one.host, other.host)
    assert not np.array_equal(one.start, synthetic_history("synthetic:taurus,seed=6").start)


@pytest.mark.parametrize("spec", ["synthetic:nobody", "synthetic:taurus,seed=x", "synthetic:"])
def test_odd_specs(spec):
    with pytest.raises(InputError, match="is not a synthetic history"):
        synthetic_history(spec)


def test_odd_standin():
    with pytest.raises(InputError, match="is not a stand-in"):
        load_fabric("standin:nobody")
