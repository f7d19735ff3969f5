"""With the agent, or munge, gone in any way: jobs start a little later at most, nothing breaks.

The seconds are printed (`pytest -s`), not asserted. A deadline that does not hold is seen all the
same: the plugin would not give up and say so, and srun would wait until the test's patience ends.
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from statistics import median

import pytest

from sar_lab.live.process import wait_until
from tests.worlds.live.events import FAILURES, Agent
from tests.worlds.live.spank import SpankCluster, spank_cluster

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def slurm() -> Iterator[SpankCluster]:
    with spank_cluster() as cluster:
        yield cluster


def start_ms(slurm: SpankCluster, jobs: int = 9) -> float:
    """Median milliseconds until a job's task runs."""
    times = []
    for _ in range(jobs):
        times.append(slurm.start_seconds())
        slurm.wait_idle()
    return 1000 * median(times)


def test_a_munged_that_hangs(slurm):
    with Agent(slurm.munge_socket) as agent, socket.socket(socket.AF_UNIX) as munged:
        munged.bind(str(slurm.folder / "hanging"))
        munged.listen(64)
        slurm.arguments(agent=agent.address, munge_socket=slurm.folder / "hanging")
        print(f"\nmunged hangs: {start_ms(slurm):.0f} ms")
        assert agent.events == []
    assert "was not reported: no answer within 100 ms" in slurm.log()


def run_many(slurm: SpankCluster, jobs: int) -> None:
    """Batch jobs of one to three nodes, while the agent fails in one way after the other."""
    with ExitStack() as stack:
        addresses = [stack.enter_context(failure()) for failure in FAILURES.values()]
        addresses.append(stack.enter_context(Agent(slurm.munge_socket)).address)
        sizes, places = itertools.cycle([1, 2, 1, 3]), itertools.cycle(addresses)
        ids: list[str] = []
        for number in range(jobs):
            if number % 10 == 0:
                slurm.arguments(agent=next(places))
            script = ["sbatch", "--parsable", "--no-requeue", "-o", "/dev/null"]
            traffic = "--sar-traffic=ring" if number % 2 else "--sar-traffic=none"
            ids.append(
                slurm.run(*script, f"-N{next(sizes)}", traffic, "--wrap", "srun true").strip()
            )
        assert wait_until(lambda: not slurm.squeue("-h"), 60 + jobs, pause=0.5)
    slurm.assert_completed(*ids)
    slurm.assert_healthy()


def test_jobs_while_the_agent_fails(slurm):
    run_many(slurm, 40)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_thousand_jobs_while_the_agent_fails(slurm):
    run_many(slurm, 1000)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_256_nodes():
    """All at once on this one machine, so many a node's 50 ms are over before it has a turn."""
    with (
        spank_cluster("n[001-256]", leaf_size=16) as slurm,
        Agent(slurm.munge_socket) as agent,
    ):
        slurm.arguments(agent=agent.address)
        plain = slurm.tasks_see("-N256", "--sar-traffic=alltoall")
        assert plain["SLURM_JOB_NUM_NODES"] == "256"
        slurm.wait_idle(300)  # a lost "done" of a node is asked for again after a minute or two
        agent.heard("1", "start")
        agent.heard("1", "end")
        told = {event: len(agent.of("1", event)) for event in ("start", "hint", "end")}
        print(f"\nof 256 nodes that told at once were heard: {told}")
        assert slurm.log().count("was not reported") > 0 or told["start"] == 256
        with FAILURES["stopped"]() as address:
            slurm.arguments(agent=address)
            slurm.run("srun", "-N256", "true", timeout=120)
        slurm.wait_idle(60)
