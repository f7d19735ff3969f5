"""Isolating placement: cables of one job each, all of its bandwidth, and a queue that starts jobs
in time."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.check import check_routes
from sar_agent.errors import InputError, Unserved
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs.model import make_job, multi_switch_mix
from sar_agent.quality import measure
from sar_lab.mixes.lublin import SubmittedJobs
from sar_lab.mixes.node_selection import first_fit
from sar_lab.research.peers.isolating_placement import (
    LeafShare,
    LeafSpace,
    hosts_of,
    isolated_routes,
    space_of,
)
from sar_lab.research.peers.placed_queue import NodeSpace, run_placed
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


@examples(60)
@given(jobs=JOBS, size=st.integers(1, 12))
def test_a_place_is_found_where_an_exhaustive_search_finds_one(
    jobs: list[tuple[int, bool]], size: int
) -> None:
    space = LeafSpace(4, 3, 3)
    filled(space, [each for each, _ in jobs], [keep for _, keep in jobs])
    found = space.copy().place(size)
    assert (found is not None) == exists(space, size)


def exists(space: LeafSpace, size: int) -> bool:
    room = [len(hosts) for hosts in space.free]
    if any(each >= size for each in room):
        return True
    for each in range(1, space.nodes + 1):
        count, rest = divmod(size, each)
        for spines in combinations(range(space.spines), each):
            need = sum(1 << s for s in spines)
            fit = [
                i for i in range(space.leaves) if room[i] >= each and space.cables[i] & need == need
            ]
            for chosen in combinations(fit, count) if count + bool(rest) > 1 else ():
                others = set(range(space.leaves)) - set(chosen)
                if not rest or any(
                    room[i] >= rest and (space.cables[i] & need).bit_count() >= rest for i in others
                ):
                    return True
    return False


@examples(40)
@given(jobs=JOBS)
def test_isolated_routes_keep_all_bandwidth_and_share_no_cable(
    jobs: list[tuple[int, bool]],
) -> None:
    fabric = load_fabric("xgft:2;4,6;1,4")
    placed = filled(space_of(fabric), [size for size, _ in jobs], [keep for _, keep in jobs])
    routes = isolated_routes(fabric, placed)
    assert check_routes(fabric, routes).passed
    every = [make_job(str(i), hosts_of(shares).tolist()) for i, shares in enumerate(placed)]
    mix = multi_switch_mix(fabric, every)
    assert measure(fabric, mix, routes).throughput_min == pytest.approx(1)
    used = np.zeros(fabric.channels, np.int64)
    for job in mix.jobs:
        used += measure(fabric, multi_switch_mix(fabric, [job]), routes).channel_efi > 0
    assert used.max(initial=0) <= 1


def test_a_job_that_finds_nodes_but_no_cables_waits() -> None:
    """Two leaves of two hosts, two spines. The first job has a host and the first spine's cable of
    each; the second the other two. With one spine less, the second waits for cables."""
    space = LeafSpace(2, 2, 2)
    space.free = [[1], [3]]
    space.cables = [0b10, 0b10]
    assert space.copy().place(2) == (LeafShare(0, (1,), (1,)), LeafShare(1, (3,), (1,)))
    space.cables = [0b10, 0b01]
    assert space.place(2) is None and space.free == [[1], [3]]


def queue(*jobs: tuple[int, float]) -> SubmittedJobs:
    nodes, seconds = zip(*jobs, strict=True)
    return SubmittedJobs(np.zeros(len(jobs)), np.array(nodes), np.array(seconds, float))


def test_a_later_job_starts_early_only_if_it_ends_in_time() -> None:
    """By hand, four nodes: 3 for 10 s; 4 must wait until 10; 1 fits before for 9 s, not for 11."""
    ran = run_placed(
        queue((3, 10), (4, 5), (1, 11), (1, 9)), NodeSpace(np.ones(4, bool), first_fit)
    )
    assert [(job.size, job.start, job.end) for job in ran] == [
        (3, 0, 10), (1, 0, 9), (4, 10, 15), (1, 15, 26)
    ]  # fmt: skip


def test_a_job_larger_than_the_machine_is_an_error() -> None:
    with pytest.raises(ValueError, match="5 nodes does not fit into the empty machine"):
        run_placed(queue((5, 1)), NodeSpace(np.ones(4, bool), first_fit))


def test_other_fabrics_are_refused() -> None:
    with pytest.raises(InputError, match="no two-level tree"):
        space_of(load_fabric("xgft:3;2,2,2;1,2,2"))
    with pytest.raises(Unserved, match="not a fat tree"):
        space_of(load_fabric("torus:5"))
