"""Collectives of the study of demand: who sends to whom."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from sar_agent.fabric.model import I32
from sar_lab.research.peers.collective_demand import (
    COLLECTIVES,
    JOBS,
    fabrics,
    halo,
    jobs_of,
    pairwise,
    recursive,
    trees,
)  # fmt: skip


def ranks(n: int) -> I32:
    return np.arange(n, dtype=np.int32)


@pytest.mark.parametrize("n", range(2, 40))
def test_both_of_ncclss_trees_reach_all_ranks_and_no_rank_is_inside_both(n: int) -> None:
    [step] = trees(ranks(n))
    assert len(step) == 4 * (n - 1)
    inner = []
    for half in np.split(step, 2):
        tree = nx.Graph(half.tolist())
        assert nx.is_tree(tree) and len(tree) == n
        assert all(degree <= 3 for _, degree in tree.degree)
        inner.append({rank for rank, degree in tree.degree if degree > 2})
    assert not inner[0] & inner[1]


@pytest.mark.parametrize("n", [2, 7, 12, 16])
def test_who_sends_to_whom(n: int) -> None:
    everyone = {(a, b) for a in range(n) for b in range(n) if a != b}
    assert {tuple(pair) for step in pairwise(ranks(n)) for pair in step.tolist()} == everyone
    for step in recursive(ranks(n)):
        assert sorted(step[:, 0]) == sorted(step[:, 1]) == list(range(2 ** (n.bit_length() - 1)))
    [near] = halo(ranks(n))
    assert len({tuple(pair) for pair in near.tolist()}) == len(near)
    assert {tuple(pair) for pair in near[:, ::-1].tolist()} == {tuple(p) for p in near.tolist()}


def test_jobs_are_of_whole_hosts() -> None:
    for title, fabric in fabrics().items():
        mix = jobs_of(fabric, 0)
        assert [len(job.terminals) * 64 // fabric.terminals for job in mix.jobs] == list(JOBS), (
            title
        )
    assert len(COLLECTIVES) == 6
