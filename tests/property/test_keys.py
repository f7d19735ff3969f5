"""Routing keys against counting, trying all, and the paper's own example."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from sar_agent.fabric.spec import load_fabric
from sar_agent.routing.keys import choose_shift, key_tree, make_key, shift_in
from sar_agent.routing.keys.assignment_problem import least_cost, least_most
from tests.examples import examples
from tests.worlds.key_flows import (
    key_of,
    most,
    optimum,
    permutation,
    phases,
    shifts,
)

FULL = {"xgft:2;4,4;1,4": 4000, "xgft:3;3,3,3;1,3,3": 2500, "xgft:2;18,36;1,18": 1500,
        "xgft:3;6,6,6;1,6,6": 1500, "xgft:3;12,12,12;1,12,12": 500}  # fmt: skip
"""XGFTs with as many parents as children, and how many permutations of the 10,000."""
TREES = {spec: key_tree(load_fabric(spec)) for spec in FULL if "12" not in spec}
SMALL = [key_tree(load_fabric(spec)) for spec in
         ("xgft:2;2,3;1,2", "xgft:2;3,3;1,2", "xgft:3;2,2,2;1,2,2", "xgft:3;2,2,2;1,2,1",
          "xgft:3;2,2,2;1,1,3")]  # fmt: skip


def permutations_meet_nowhere(spec: str, count: int) -> None:
    tree = key_tree(load_fabric(spec))
    random = np.random.default_rng(count)
    for _ in range(count):
        flows = permutation(random, tree.fabric.terminals)
        for shifted in (False, True):
            key = make_key(tree, [flows], shifted=shifted)
            assert most(key) <= [1] and key.contention[0].flows == most(key)[0]


@pytest.mark.parametrize("spec", FULL)
def test_permutations_meet_nowhere(spec: str) -> None:
    permutations_meet_nowhere(spec, 5)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("spec", FULL)
def test_ten_thousand_permutations_meet_nowhere(spec: str) -> None:
    permutations_meet_nowhere(spec, FULL[spec])


@examples(150)
@given(tree=st.sampled_from(SMALL), data=st.data())
def test_one_flow_a_host_is_the_optimum(tree, data: st.DataObject) -> None:
    pairs = data.draw(phases(tree.fabric, 6, sources=False))
    key = key_of(tree, pairs, shifted=data.draw(st.booleans()))
    assert most(key)[0] == key.contention[0].flows == optimum(tree, pairs)
    assert key.contention[0].shared == 0


def test_several_sources_a_host_are_nearly_always_the_optimum() -> None:
    """Heavy edges make it a matter of packing; of 5,600 drawn like this one was one flow above."""
    random = np.random.default_rng(5)
    missed = 0
    for number in range(200):
        tree = SMALL[number % len(SMALL)]
        hosts = tree.fabric.terminals
        drawn = [random.choice(hosts, 2, replace=False) for _ in range(random.integers(2, 9))]
        pairs = sorted({(int(s), int(d)) for s, d in drawn})
        key, least = key_of(tree, pairs), optimum(tree, pairs)
        assert key.contention[0].bound <= least <= most(key)[0] <= least + 1
        assert most(key)[0] == key.contention[0].flows
        missed += most(key)[0] > least
    assert missed <= 2


@examples(150)
@given(spec=st.sampled_from(sorted(TREES)), data=st.data())
def test_phases_at_one_offset_are_counted_as_they_are(spec: str, data: st.DataObject) -> None:
    tree = TREES[spec]
    pairs = [data.draw(phases(tree.fabric, 20, sources=True)) for _ in range(3)]
    key = key_of(tree, *pairs, shifted=data.draw(st.booleans()))
    found = most(key)
    assert found == [one.flows for one in key.contention]
    assert all(one.flows >= one.bound for one in key.contention)
    load = data.draw(st.lists(st.integers(0, 3), min_size=4, max_size=4))
    others = np.resize(np.array(load), tree.fabric.channels)
    shift = choose_shift(key, others)
    assert most(key, shift) == found
    again = shift_in(key, _table(key, shift))
    assert again is not None and (again.own == shift.own).all()


def _table(key, shift) -> np.ndarray:
    from sar_agent.routing.keys import rows_of

    fabric = key.tree.fabric
    table = np.zeros((fabric.destinations, fabric.switches), np.uint8)
    rows = rows_of(key, shift, fabric)
    table[rows.destinations] = rows.egress
    return table


@examples(60)
@given(spec=st.sampled_from(sorted(TREES)), data=st.data())
def test_a_key_to_be_shifted_fills_as_few_middle_switches_as_a_leaf_has_flows(
    spec: str, data: st.DataObject
) -> None:
    """And the fuller of two gains nothing by an exchange along one path of both. It is even where
    more jobs of its size than middle switches of a leaf fit the fabric."""
    tree = TREES[spec]
    leaf, hosts = tree.fabric.terminal_switch, tree.fabric.terminals
    assert tree.view is not None
    least = -(-hosts // int(tree.view.w[1]))
    senders = data.draw(st.integers(1, min(hosts, 2 * least)))
    whole = permutation(np.random.default_rng(data.draw(st.integers(0, 99))), hosts)
    flows = whole[0][:senders], whole[1][:senders]
    key = make_key(tree, [flows], shifted=True)
    if len(flows[0]) < least:
        assert (key.digits == make_key(tree, [flows]).digits).all()
        return
    ends = leaf[key.source], leaf[key.destination]
    degree = max(np.bincount(end).max() for end in ends)
    size = np.bincount(key.digits[:, 0], minlength=2)
    assert np.count_nonzero(size) == degree
    for a, b in combinations(np.argsort(-size, kind="stable").tolist(), 2):
        graph = nx.MultiGraph()
        for i in np.flatnonzero((key.digits[:, 0] == a) | (key.digits[:, 0] == b)).tolist():
            graph.add_edge(("up", ends[0][i]), ("down", ends[1][i]), full=key.digits[i, 0] == a)
        for nodes in nx.connected_components(graph):
            full = [each for *_, each in graph.subgraph(nodes).edges(data="full")]
            assert 2 * sum(full) >= len(full)


@examples(80)
@given(
    tree=st.sampled_from([SMALL[0], SMALL[1], SMALL[2], TREES["xgft:2;4,4;1,4"]]),
    data=st.data(),
)
def test_the_shift_is_the_best_there_is(tree, data: st.DataObject) -> None:
    pairs = [data.draw(phases(tree.fabric, 8, sources=True)) for _ in range(2)]
    key = key_of(tree, *pairs, shifted=data.draw(st.booleans()))
    load = st.lists(st.integers(0, 4), min_size=tree.fabric.channels)
    others = np.array(data.draw(load)[: tree.fabric.channels], np.int64)
    shift = choose_shift(key, others)
    assert (shift.most, shift.squares) == min(shifts(key, others))
    assert most(key, shift) == most(key)


@given(size=st.integers(1, 7), data=st.data())
def test_assignments_are_scipys(size: int, data: st.DataObject) -> None:
    numbers = st.lists(st.integers(0, 9), min_size=size * size, max_size=size * size)
    cost = np.array(data.draw(numbers), np.float64).reshape(size, size)
    column = np.empty(size, np.int64)
    rows, columns = linear_sum_assignment(cost)
    assert least_cost(cost, column) == cost[rows, columns].sum()
    assert sorted(column) == list(range(size)) and cost[rows, column].sum() == least_cost(
        cost, column
    )
    for bar in np.unique(cost):
        above = (cost > bar).astype(np.float64)
        rows, columns = linear_sum_assignment(above)
        if above[rows, columns].sum() == 0:
            assert least_most(cost, 0.0) == bar
            break
