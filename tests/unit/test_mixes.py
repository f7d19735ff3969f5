"""Made-up histories: the model's own moments, the scheduler's rules, the papers' marks."""

from __future__ import annotations

import numpy as np
import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.spec import load_fabric
from sar_lab.mixes.backfill import run_queue
from sar_lab.mixes.lublin import SubmittedJobs, Workload, submit_jobs
from sar_lab.mixes.node_selection import first_fit, pieces
from sar_lab.mixes.synthetic_histories import DAY, synthetic_history


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


@pytest.mark.parametrize("spec", ["synthetic:nobody", "synthetic:taurus,seed=x", "synthetic:"])
def test_odd_specs(spec):
    with pytest.raises(InputError, match="is not a synthetic history"):
        synthetic_history(spec)


def test_odd_standin():
    with pytest.raises(InputError, match="is not a stand-in"):
        load_fabric("standin:nobody")
