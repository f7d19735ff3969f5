"""The studies that are ours: what their claims say is what their code judges, and their models are
right where they can be compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.quality import measure
from sar_agent.routing import Options, load_engine
from sar_lab.peers import herding, keys_beside_sar_plus
from sar_lab.peers.greedy_trees import greedy_peak
from sar_lab.peers.isolating_placement import isolated_routes, space_of
from sar_lab.peers.partial_isolation import PartialPlace, PartialSpace
from sar_lab.peers.phase_interference import phase_times
from sar_lab.peers.site_inputs import site_folder


@pytest.mark.parametrize(
    ("bound", "ratio", "holds"),
    [(3, 4 / 3, True), (3, 5 / 3, False), (50, 1.1, True), (50, 1.12, False)],
)
def test_one_route_or_ten_per_cent_above_the_bound(bound: float, ratio: float, holds: bool) -> None:
    point = {name: [1.0, 1.0] for name in herding.SWEPT}
    sweep = {("1:1", 128): {**point, herding.PLUS: [1.0, ratio], "bound": [bound, bound]}}
    [claim] = [c for c in herding.claims_of(sweep, {}, None) if "one route" in c.says]
    assert claim.holds is holds
    with_leaf = [c for c in herding.claims_of(sweep, {}, None) if "leaf by leaf" in c.says]
    assert [c.holds for c in with_leaf] == [None], "equal peaks are not told apart"


def slow_peak(fabric: Fabric, mix: JobMix, leaf_by_leaf: bool, larger: bool) -> int:
    """`greedy_peak`, plainly: weights in dictionaries, all pairs one by one."""
    from sar_agent.routing.sar import destination_order

    spines = sorted(set(range(fabric.switches)) - set(fabric.leaves.tolist()))
    job_of = {t: job for job in mix.jobs for t in job.terminals.tolist()}
    weight: dict[tuple[int, int], int] = {}
    for d in destination_order(fabric, mix)[0].tolist():
        if d not in job_of:
            continue
        to = int(fabric.terminal_switch[d])
        senders = [int(fabric.terminal_switch[t]) for t in job_of[d].terminals]
        taken = []
        for here in sorted(set(senders) - {to}):
            both = [(weight.get((here, s), 0), weight.get((s, to), 0), s) for s in spines]
            spine = min(both, key=lambda w: (max(w[:2]) if larger else w[0] + w[1], w[2]))[2]
            routes = senders.count(here)
            taken += [((here, spine), routes), ((spine, to), routes)]
            if leaf_by_leaf:
                for cable, number in taken:
                    weight[cable] = weight.get(cable, 0) + number
                taken = []
        for cable, number in taken:
            weight[cable] = weight.get(cable, 0) + number
    return max(weight.values())


@pytest.mark.parametrize("seed", range(6))
def test_the_model_of_algorithm_1_is_the_engine(seed: int) -> None:
    fabric = load_fabric(("xgft:2;6,6;1,6", "xgft:2;6,6;1,3")[seed % 2])
    mix = herding.equal_jobs(fabric, 3 + seed, seed)
    routes = load_engine("sar").route(fabric, mix, Options())
    assert greedy_peak(fabric, mix) == measure(fabric, mix, routes).effective_efi_max
    for leaf_by_leaf in (False, True):
        for larger in (False, True):
            fast = greedy_peak(fabric, mix, leaf_by_leaf=leaf_by_leaf, larger=larger)
            assert fast == slow_peak(fabric, mix, leaf_by_leaf, larger)
    with pytest.raises(InputError, match="no two-level tree"):
        greedy_peak(load_fabric("xgft:3;2,2,2;1,2,2"), mix)


def test_equal_jobs_share_no_host_and_fill_what_is_said() -> None:
    fabric = load_fabric("xgft:2;6,6;1,6")
    mix = herding.equal_jobs(fabric, 7, 1)
    hosts = np.concatenate([job.terminals for job in mix.jobs])
    assert len(mix.jobs) == int(0.85 * 36) // 7 and len(set(hosts.tolist())) == len(hosts)


def test_only_the_ratio_of_request_and_step_matters() -> None:
    study = keys_beside_sar_plus
    one, large = (study.play(4, study.BOTH, 1, request=0.5, scale=scale) for scale in (1, 1024))
    assert np.allclose(one.jobs, large.jobs, rtol=1e-3)
    none = study.play(4, study.BOTH, 1, keys=0)
    assert np.allclose(none.jobs, study.play(4, "sar-plus", 1).jobs)
    assert np.mean(one.phased) > np.mean(study.play(4, study.BOTH, 1).phased)


def test_where_a_key_breaks_even() -> None:
    requests = keys_beside_sar_plus.REQUESTS
    even = keys_beside_sar_plus.break_even
    assert even([1 + r for r in requests], 1.75) == pytest.approx(0.75)
    assert even([1 + r for r in requests], 9) is None, "a key pays however long its request takes"
    assert even([2 + r for r in requests], 1) is None, "a key never pays"
    words = [keys_beside_sar_plus.seconds_text(s) for s in (1.07, 2e-3, 1.23e-6)]
    assert words == ["1.1 s", "2 ms", "1.2 µs"]


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


def test_studies_run_without_the_data_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SAR_DATA", raising=False)
    monkeypatch.setattr(herding, "SIZES", (4, 128))
    monkeypatch.setattr(herding, "TREES", {"3:1": "xgft:2;36,18;1,12"})
    result = herding.run([0, 1], tmp_path)
    assert "$SAR_DATA" in result.ours["how"] and len(result.ours["tables"]) == 1
    assert result.picture and result.picture.stat().st_size > 10_000
    monkeypatch.setenv("SAR_DATA", str(tmp_path / "missing"))
    with pytest.raises(InputError, match="no folder; unset it"):
        site_folder()
