"""Isolating placement: cables of one job each, all of its bandwidth, and a queue that starts jobs
in time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sar_lab.mixes.lublin import SubmittedJobs
from sar_lab.research.peers.isolating_placement import (
    LeafShare,
    LeafSpace,
)
from tests.examples import examples

Shares = tuple[LeafShare, ...]


def filled(space: LeafSpace, sizes: list[int], keep: list[bool]) -> list[Shares]:
    """Places jobs one after the other; those that are not kept end when the next has been tried."""
    placed: list[Shares] = []
    leaving: Shares | None = None
    for size, stays in zip(sizes, keep, strict=True):
        shares = space.place(size)
        if leaving is not None:
            space.release(leaving)
        leaving = None
        if shares is not None:
            assert sum(len(share.nodes) for share in shares) == size
            if stays:
                placed.append(shares)
            else:
                leaving = shares
    if leaving is not None:
        space.release(leaving)
    return placed


JOBS = st.lists(st.tuples(st.integers(1, 20), st.booleans()), min_size=1, max_size=25)


@examples(100)
@given(jobs=JOBS)
def test_each_job_owns_a_tree_and_nothing_is_owned_twice(jobs: list[tuple[int, bool]]) -> None:
    space = LeafSpace(6, 4, 4)
    placed = filled(space, [size for size, _ in jobs], [keep for _, keep in jobs])
    nodes = [node for shares in placed for share in shares for node in share.nodes]
    cables = [(sh.leaf, spine) for shares in placed for sh in shares for spine in sh.spines]
    assert len(set(nodes)) == len(nodes) and len(set(cables)) == len(cables)
    for shares in placed:
        assert all(node // 4 == share.leaf for share in shares for node in share.nodes)
        if len(shares) == 1:
            assert not shares[0].spines
            continue
        *whole, last = shares
        assert len({share.leaf for share in shares}) == len(shares)
        assert len({len(share.nodes) for share in whole}) == 1
        assert len({frozenset(share.spines) for share in whole}) == 1
        assert all(len(share.nodes) == len(share.spines) for share in shares)
        assert set(last.spines) <= set(whole[0].spines)
    free = [node for leaf in space.free for node in leaf]
    assert sorted([*free, *nodes]) == list(range(24))
    held = sum(bits.bit_count() for bits in space.cables)
    assert held == 24 - len(cables)


def queue(*jobs: tuple[int, float]) -> SubmittedJobs:
    nodes, seconds = zip(*jobs, strict=True)
    return SubmittedJobs(np.zeros(len(jobs)), np.array(nodes), np.array(seconds, float))
