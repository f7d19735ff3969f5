"""One message at a time: ranks in Slurm's order, and tables that do and do not serve shifts."""

from __future__ import annotations

from sar_agent.demand.rank_order import ranks_of
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.quality.collective_contention import collective_contention
from sar_agent.routing import Options, load_engine


def on_all(fabric: Fabric) -> JobMix:
    return JobMix((make_job("1", range(fabric.terminals)),))


def test_ranks_follow_names_not_the_dump() -> None:
    fabric = load_fabric("docs/examples/cluster.ibnetdiscover")
    assert fabric.terminal_host[0] == "n036"
    hosts = [fabric.terminal_host[t] for t in ranks_of(fabric, on_all(fabric))]
    assert hosts == [f"n{i:03}" for i in range(1, 37)]


def test_two_jobs_that_share_their_only_link() -> None:
    """Two leaves, one spine: each phase of two ranks sends one message up and one down a link."""
    fabric = load_fabric("xgft:2;2,2;1,1")
    mix = JobMix((make_job("1", [0, 2]), make_job("2", [1, 3])))
    tables = load_engine("minhop").route(fabric, mix, Options()).egress[0]
    assert collective_contention(fabric, mix, tables).tolist() == [2.0, 2.0]
    assert collective_contention(fabric, JobMix(mix.jobs[:1]), tables).tolist() == [1.0]
