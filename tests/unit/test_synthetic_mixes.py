"""Synthetic jobs: what `mix:1,placed=tree` and `blocks:30,7,50` mean."""

from __future__ import annotations

import numpy as np
import pytest

from sar_agent.demand.endpoints import mix_of_spec
from sar_agent.errors import InputError
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs.tree_placement import TreePlacement

TWO, THREE = load_fabric("xgft:2;4,3;1,2"), load_fabric("xgft:3;4,2,2;1,2,2")


def left(place: TreePlacement) -> list[int]:
    return [len(free) for free in place.free.values()]


def test_a_job_takes_the_leaf_with_fewest_free_hosts_that_has_enough() -> None:
    place = TreePlacement(TWO)
    place.start(1)
    place.start(4)
    assert left(place) == [3, 0, 4]
    assert place.start(3) == ["n002", "n003", "n004"]
    assert left(place) == [0, 0, 4]


def test_a_job_stays_below_the_lowest_switch_that_has_room() -> None:
    place = TreePlacement(THREE)
    place.start(3)  # 1, 4 | 4, 4
    place.start(6)  # not over both islands, although 4 + 4 would need no more leaves
    assert left(place) == [1, 4, 0, 2]
    place.start(5)  # as the left island has 5
    assert left(place) == [0, 0, 0, 2]


def test_more_hosts_than_are_free_are_refused() -> None:
    place = TreePlacement(TWO)
    place.start(10)
    with pytest.raises(ValueError, match="more than are free"):
        place.start(3)


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("blocks:7,6", "12 hosts for jobs of together 13"),
        ("blocks:0,3", "12 hosts"),
        ("blocks:a", "a size"),
        ("mix:1,placed=line", "placed=line"),
        ("mix:x,placed=tree", "seed"),
    ],
)
def test_other_specs_are_refused(spec: str, word: str) -> None:
    with pytest.raises(InputError, match=word):
        mix_of_spec(spec, TWO)


def test_slurm_spreads_jobs_over_fewer_leaves_than_chance() -> None:
    fabric = load_fabric("xgft:3;12,12,12;1,12,12")
    tree, chance = (
        np.diff(mix_of_spec(f"mix:1{placed}", fabric).by_leaf(fabric)[0]).mean()
        for placed in (",placed=tree", "")
    )
    assert tree < chance / 3
