"""Patterns: what they are called, and what they are; algorithms of collectives."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from sar_agent.demand.patterns import dims_create, phases_of, rank_phases, read_phases
from sar_agent.errors import InputError
from sar_agent.fabric.model import I32
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs.model import make_job
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

FABRIC = load_fabric("xgft:2;4,4;1,4")


def pairs(word: str, size: int) -> dict[str, list[tuple[int, int]]]:
    found = rank_phases(word, size)
    assert len({phase.name for phase in found}) == len(found)
    return {
        p.name: list(zip(p.source.tolist(), p.destination.tolist(), strict=True)) for p in found
    }


def test_patterns_are_what_their_meaning_says() -> None:
    assert pairs("ring", 3) == {"+1": [(0, 1), (1, 2), (2, 0)]}
    assert pairs("ring", 1) == {}
    assert pairs("shift:2", 3) == {"+2": [(0, 2), (1, 0), (2, 1)]}
    assert pairs("bitcomp", 4) == {"complement": [(0, 3), (1, 2), (2, 1), (3, 0)]}
    assert pairs("transpose", 4) == {"transpose": [(1, 2), (2, 1)]}
    assert pairs("butterfly", 4)["bit 1"] == [(0, 2), (1, 3), (2, 0), (3, 1)]
    assert list(pairs("alltoall", 4)) == ["+1", "+2", "+3"]
    grid = pairs("stencil2d:2x3", 7)
    assert list(grid) == ["+x", "-x", "+y", "-y"]
    assert grid["+x"] == [(0, 3), (1, 4), (2, 5), (3, 0), (4, 1), (5, 2)]
    assert grid["-y"] == [(0, 2), (1, 0), (2, 1), (3, 5), (4, 3), (5, 4)]
    assert list(pairs("stencil3d:2x2x2", 8)) == ["+x", "-x", "+y", "-y", "+z", "-z"]
    assert pairs("stencil2d:1x3", 3)["+x"] == []


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("stencil2d:4x5", "a grid of 4x5 needs 20 ranks, the job has 16"),
        ("stencil3d:999999x999999x999999", "the job has 16"),
        ("shift:16", "shift:16 needs more than 16 ranks, the job has 16"),
        ("none", "does not say who sends to whom; there are ring, stencil2d:AxB"),
        ("weight=0.5", "does not say who sends to whom"),
        ("shift", "does not say who sends to whom"),
        ("ring:2", "does not say who sends to whom"),
        ("gather", "does not say who sends to whom"),
    ],
)
def test_patterns_that_do_not_fit_are_refused(word: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        rank_phases(word, 16)


def test_a_file_of_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pattern"
    path.write_text("# mine\n0 1\n1 2 # on\n\n\n2 0\n\n[back]\n\n1 0\n# still\n2 1\n[none]\n")
    job = make_job("a", [9, 2, 5])
    found = [[a.tolist() for a in phase] for phase in phases_of(str(path), FABRIC, job)]
    assert found == [[[2, 5], [5, 9]], [[9], [2]], [[5, 9], [2, 5]]]
    assert [phase.name for phase in read_phases(path.read_text(), 3)] == ["1", "2", "back"]
    with pytest.raises(InputError, match="neither a pattern nor a file; there are ring"):
        phases_of("nowhere", FABRIC, job)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 1 2\n", "f:1: '0 1 2' is not `FROM TO`; two ranks, from 0"),
        ("0 1\n0 3\n", "f:2: rank 3, but the job has ranks 0 … 2"),
        ("0 1\n1 1\n", "f:2: rank 1 sends to itself"),
        ("[a]\n0 1\n[a]\n", "f:3: two phases are called 'a'"),
        ("[2]\n0 1\n\n1 2\n", "f:4: two phases are called '2'"),
        ("[ ]\n0 1\n", "f:1: a phase without a name"),
        ("# nothing\n", "f: no pair of ranks"),
    ],
)
def test_a_file_that_makes_no_sense(text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        read_phases(text, 3, "f")
    assert said in str(error.value)


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


def test_collectives_are_those_of_the_libraries() -> None:
    assert pairs("recursive-doubling", 6) == {
        "fold": [(0, 1), (2, 3)],
        "bit 0": [(1, 3), (3, 1), (4, 5), (5, 4)],
        "bit 1": [(1, 4), (3, 5), (4, 1), (5, 3)],
        "unfold": [(1, 0), (3, 2)],
    }
    assert list(pairs("recursive-doubling", 8)) == ["bit 0", "bit 1", "bit 2"]
    assert pairs("bruck", 5)["+4"] == [(0, 4), (1, 0), (2, 1), (3, 2), (4, 3)]
    assert list(pairs("bruck", 9)) == ["+1", "+2", "+4", "+8"]
    assert sorted(pairs("bidirectional-ring", 3)["+1 -1"]) == [
        (0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1),
    ]  # fmt: skip
    assert dims_create(12, 2) == [4, 3]
    assert dims_create(7, 2) == [7, 1]
    assert dims_create(36, 3) == [4, 3, 3]
    assert dims_create(16, 3) == [4, 2, 2]
    assert pairs("halo2d", 6) == pairs("stencil2d:3x2", 6)


@pytest.mark.parametrize("size", range(2, 70))
def test_a_rank_is_an_inner_node_of_at_most_one_of_two_trees(size: int) -> None:
    up = pairs("double-tree", size)["up"]
    trees = [nx.DiGraph(up[: size - 1]), nx.DiGraph(up[size - 1 :])]
    inner = [{to for _, to in tree.edges} for tree in trees]
    roots = [next(node for node in tree if not tree.out_degree(node)) for tree in trees]
    for tree, root in zip(trees, roots, strict=True):
        assert len(tree) == size
        assert nx.is_arborescence(tree.reverse())
        assert max(dict(tree.in_degree).values()) <= 2
        assert nx.dag_longest_path_length(tree) <= size.bit_length()
        assert root in tree
    assert not (inner[0] - {roots[0]}) & (inner[1] - {roots[1]})
