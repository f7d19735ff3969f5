"""The studies that are ours: what their claims say is what their code judges, and their models are
right where they can be compared."""

from __future__ import annotations

import numpy as np
import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.quality import measure
from sar_agent.routing import Options, load_engine
from sar_lab.research.peers import herding
from sar_lab.research.peers.greedy_trees import greedy_peak
from sar_lab.research.peers.isolating_placement import isolated_routes, space_of
from sar_lab.research.peers.partial_isolation import PartialPlace, PartialSpace
from sar_lab.research.peers.phase_interference import phase_times


@pytest.mark.parametrize("seed", range(6))
def test_the_model_of_algorithm_1_is_the_engine(seed: int) -> None:
    fabric = load_fabric(("xgft:2;6,6;1,6", "xgft:2;6,6;1,3")[seed % 2])
    mix = herding.equal_jobs(fabric, 3 + seed, seed)
    routes = load_engine("sar").route(fabric, mix, Options())
    assert greedy_peak(fabric, mix) == measure(fabric, mix, routes).effective_efi_max
    with pytest.raises(InputError, match="no two-level tree"):
        greedy_peak(load_fabric("xgft:3;2,2,2;1,2,2"), mix)


def test_interference_by_hand() -> None:
    """Two leaves of two hosts under two spines: jobs 0, 2 and 1, 3, both over one spine."""
    fabric = load_fabric("xgft:2;2,2;1,2")
    mix = JobMix.of([make_job("1", [0, 2]), make_job("2", [1, 3])])
    routes = load_engine("dmodk").route(fabric, JobMix(()), Options())
    apart = phase_times(fabric, mix, routes, 3, 0)
    assert apart.together.tolist() == apart.alone.tolist() == [1, 1]
    routes.egress[0, :2, 1], routes.egress[0, 2:4, 0] = 3, 3
    herd = phase_times(fabric, mix, routes, 3, 0)
    assert herd.together.tolist() == [2, 2] and herd.alone.tolist() == [1, 1]
    assert herd.interference.tolist() == [2, 2]
    with pytest.raises(ValueError, match="more than two cables"):
        tree = load_fabric("xgft:3;2,2,2;1,2,2")
        far = load_engine("dmodk").route(tree, JobMix(()), Options())
        phase_times(tree, JobMix.of([make_job("1", [0, 7])]), far, 1, 0)


def test_partial_isolation_is_between_isolation_and_any_free_node() -> None:
    """Jobs that insist are placed as by Jigsaw, others wherever there are nodes."""
    fabric = load_fabric("xgft:2;4,4;1,4")
    kinds = []
    for seed in range(10):
        random = np.random.default_rng(seed)
        strict, loose = PartialSpace(space_of(fabric), 16), PartialSpace(space_of(fabric), 0)
        alone = space_of(fabric)
        held: list[PartialPlace] = []
        for _ in range(12):
            size = int(random.integers(2, 7))
            one, other = strict.place(size), alone.place(size)
            assert (one and one.shares) == other and (one is None or one.isolated)
            free = sum(map(len, loose.space.free))
            tried = loose.copy().place(size)
            assert loose.place(size) == tried and (tried is None) == (free < size)
            if tried:
                held.append(tried)
            if len(held) > 1 and random.random() < 0.4:
                loose.release(held.pop(0))
            hosts = [h for place in held for h in place.hosts.tolist()]
            assert len(set(hosts)) == len(hosts)
            assert len(hosts) + sum(map(len, loose.space.free)) == fabric.terminals
            kinds += [place.isolated for place in held]
    assert {*kinds} == {True, False}


def test_isolated_jobs_are_not_disturbed() -> None:
    fabric = load_fabric("xgft:2;4,4;1,4")
    space = PartialSpace(space_of(fabric), 16)
    places = [place for size in (6, 6) if (place := space.place(size))]
    mix = JobMix.of(make_job(str(i), p.hosts.tolist()) for i, p in enumerate(places))
    routes = isolated_routes(fabric, [p.shares for p in places])
    assert phase_times(fabric, mix, routes, 4, 1).interference.tolist() == [1, 1]
