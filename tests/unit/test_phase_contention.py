"""One message at a time: ranks in Slurm's order, and tables that do and do not serve shifts."""

from __future__ import annotations

import numpy as np
import pytest

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.jobs.rank_order import ranks_of
from sar_agent.routing import Options, load_engine
from sar_agent.routing.phase_contention import moments, phase_contention

TREE = load_fabric("xgft:2;4,4;1,4")


def on_all(fabric: Fabric) -> JobMix:
    return JobMix((make_job("1", range(fabric.terminals)),))


def test_ranks_follow_names_not_the_dump() -> None:
    fabric = load_fabric("docs/examples/cluster.ibnetdiscover")
    assert fabric.terminal_host[0] == "n036"
    hosts = [fabric.terminal_host[t] for t in ranks_of(fabric, on_all(fabric))]
    assert hosts == [f"n{i:03}" for i in range(1, 37)]


def test_ranks_of_each_job_stay_together() -> None:
    mix = JobMix((make_job("1", [1, 5, 9]), make_job("2", [0, 4])))
    assert ranks_of(TREE, mix).tolist() == [1, 5, 9, 0, 4]


def test_d_mod_k_serves_a_shift_on_a_full_tree() -> None:
    mix = on_all(TREE)
    tables = load_engine("dmodc").route(TREE, mix, Options()).egress[0]
    assert phase_contention(TREE, mix, tables).tolist() == [1.0]


def test_two_jobs_that_share_their_only_link() -> None:
    """Two leaves, one spine: each phase of two ranks sends one message up and one down a link."""
    fabric = load_fabric("xgft:2;2,2;1,1")
    mix = JobMix((make_job("1", [0, 2]), make_job("2", [1, 3])))
    tables = load_engine("minhop").route(fabric, mix, Options()).egress[0]
    assert phase_contention(fabric, mix, tables).tolist() == [2.0, 2.0]
    assert phase_contention(fabric, JobMix(mix.jobs[:1]), tables).tolist() == [1.0]


def test_no_jobs() -> None:
    tables = load_engine("minhop").route(TREE, JobMix(()), Options()).egress[0]
    assert len(phase_contention(TREE, JobMix(()), tables)) == 0


@pytest.mark.parametrize(("most", "phases"), [(5, 32), (32, 32), (5, 0)])
def test_few_phases_all_have_a_moment(most: int, phases: int) -> None:
    assert np.floor(moments(most, phases) * most).tolist() == list(range(most))


def test_moments_of_many_phases_meet_every_place_in_a_leaf() -> None:
    phase = np.floor(moments(287) * 287).astype(int)
    assert len(phase) == 32
    assert len(set(phase % 12)) == 12


def test_long_paths() -> None:
    ring = load_fabric("torus:40")
    mix = JobMix((make_job("1", [0, 19]), make_job("2", [1, 18])))
    tables = load_engine("minhop").route(ring, mix, Options()).egress[0]
    assert phase_contention(ring, mix, tables).tolist() == [2.0, 2.0]
