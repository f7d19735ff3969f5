"""The SPANK plugin in a real Slurm: every hook in every context that speaks or listens. With the
agent, or munge, gone in any way, jobs start a little later at most, and nothing breaks: where a
deadline did not hold, srun would wait until the test's patience ends."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from sar_agent.jobs.traffic import forms
from sar_lab.live.process import wait_until
from tests.worlds.live.events import FAILURES, OK, Agent
from tests.worlds.live.spank import SpankCluster, spank_cluster

pytestmark = pytest.mark.live
KEY = {"ok": True, "env": {"UCX_IB_LID_PATH_BITS": "2", "UCX_IB_NUM_PATHS": "1"}}


@pytest.fixture(scope="module")
def cluster() -> Iterator[SpankCluster]:
    with spank_cluster() as cluster:
        yield cluster


@pytest.fixture
def slurm(cluster) -> Iterator[SpankCluster]:
    """No jobs before and after, and a plugin that contacts no agent."""
    cluster.arguments()
    yield cluster
    cluster.run("scancel", "--user=root")
    cluster.wait_idle()


@pytest.fixture
def agent(slurm) -> Iterator[Agent]:
    with Agent(slurm.munge_socket) as agent:
        slurm.arguments(agent=agent.address)
        yield agent


@pytest.mark.parametrize("command", ["srun", "sbatch", "salloc"])
def test_help_prints_the_table_and_a_wrong_word_is_refused(slurm, command):
    script = ["--wrap", "true"] if command == "sbatch" else []  # it reads its script first
    helped = slurm.attempt(command, "--sar-traffic=help", *script)
    assert helped.returncode == 0
    assert helped.stderr == ""
    for form in forms():
        assert f"  {form.form:17} {form.meaning}\n" in helped.stdout
    refused = slurm.attempt(command, "-N1", "--sar-traffic=bogus", *(script or ["true"]))
    assert refused.returncode != 0
    assert (
        "error: sar_spank: --sar-traffic=bogus is no traffic pattern; there are none, ring, "
        in refused.stderr
    )
    assert slurm.squeue("-h") == ""
    assert "traffic pattern of the job" in slurm.attempt(command, "--help").stdout


def test_each_node_tells_of_start_and_end(slurm, agent):
    job = slurm.salloc("n[002-003,007]", "--sar-traffic=stencil2d:3x1")
    starts = agent.heard(job, "start", 3)
    slurm.scancel(job)
    ends = agent.heard(job, "end", 3)
    slurm.wait_idle()
    events = agent.of(job)
    assert len(events) == 6
    assert len({e.payload["id"] for e in events}) == 6
    for event in starts + ends:
        assert event.uid == 0
        assert event.payload["v"] == 1
        assert event.payload["user"] == 0
        assert event.payload["nodes"] == "n[002-003,007]"
        assert event.payload["traffic"] == "stencil2d:3x1"
        assert abs(event.payload["at"] - time.time()) < 60
    assert list(slurm.state.glob("*")) == []


def test_a_unix_socket_and_a_user_s_job(slurm):
    with Agent(slurm.munge_socket, slurm.folder / "events.sock") as agent:
        slurm.arguments(agent=agent.address)
        slurm.run("srun", "-N2", "true", user="nobody")
        assert wait_until(lambda: len(agent.events) == 4, 10)
        assert {e.uid for e in agent.events} == {0}
        assert {e.payload["user"] for e in agent.events} == {65534}
        assert not any("traffic" in e.payload for e in agent.events)


def test_tasks_get_what_the_agent_answers(slurm, agent):
    agent.answer = {"ok": True, "env": {**KEY["env"], "LD_PRELOAD": "/x.so", "UCX_TLS": "self"}}
    seen = slurm.tasks_see("-N3", "-n6")
    assert seen["UCX_IB_LID_PATH_BITS"] == "2"
    assert seen["UCX_IB_NUM_PATHS"] == "1"
    assert "UCX_TLS" not in seen  # not on the list
    assert "LD_PRELOAD" not in seen
    assert "LD_PRELOAD is not in the list" in slurm.log()
    own = slurm.tasks_see("-N1", UCX_IB_NUM_PATHS="7")
    assert own["UCX_IB_NUM_PATHS"] == "7", "the user's own word"
    script = slurm.folder / "script"
    script.write_text("#!/bin/sh\n#SBATCH -N2 --sar-traffic=ring\nenv\nsrun env\n")

    def script_and_tasks_are_told() -> bool:
        """Not of every job: the plugin's 100 ms are soon over on a busy machine."""
        job = slurm.run("sbatch", "--parsable", str(script)).strip()
        agent.heard(job, "end", 2)
        assert agent.of(job, "start")[0].payload["traffic"] == "ring"
        slurm.assert_completed(job)
        agent.quiet()
        printed = (slurm.folder / f"slurm-{job}.out").read_text()
        nothing_was_left_to_ask_for = agent.of(job, "hint") == []
        return printed.count("UCX_IB_LID_PATH_BITS=2\n") == 3 and nothing_was_left_to_ask_for

    assert wait_until(script_and_tasks_are_told, 20)


@pytest.mark.parametrize(
    "answer",
    [
        {"ok": False, "error": "no such job", "env": KEY["env"]},
        OK,
        "nonsense\n\n",
        "ok\nenv UCX_IB_NUM_PATHS=1\n",
        None,
    ],
)
def test_no_answer_no_environment(slurm, agent, answer):
    agent.answer = answer
    seen = slurm.tasks_see("-N2")
    assert not [name for name in seen if name.startswith("UCX_")]
    slurm.assert_healthy()


def test_a_step_that_names_its_traffic_asks_again(slurm, agent):
    job = slurm.salloc(2)
    agent.heard(job, "start", 2)
    agent.answer = KEY
    plain = slurm.tasks_see(f"--jobid={job}")
    assert "UCX_IB_NUM_PATHS" not in plain
    assert agent.of(job, "hint") == []
    seen = slurm.tasks_see(f"--jobid={job}", "--sar-traffic=shift:2")
    assert seen["UCX_IB_NUM_PATHS"] == "1"
    hints = agent.heard(job, "hint")  # of one node, or of both: here they share a folder
    assert {e.payload["traffic"] for e in hints} == {"shift:2"}
    agent.quiet()
    before = len(agent.of(job, "hint"))
    slurm.tasks_see(f"--jobid={job}", "--sar-traffic=shift:2")
    agent.quiet()
    assert len(agent.of(job, "hint")) == before  # kept from the step before


def test_a_file_of_the_site(slurm):
    slurm.arguments(env_file=slurm.folder / "env-%j")
    job = slurm.salloc(1)
    file = slurm.folder / f"env-{job}"
    file.write_text("# by hand\nUCX_IB_NUM_PATHS=4\nPATH=/evil\n")
    assert slurm.tasks_see(f"--jobid={job}")["UCX_IB_NUM_PATHS"] == "4"
    file.chmod(0o666)
    assert "UCX_IB_NUM_PATHS" not in slurm.tasks_see(f"--jobid={job}")
    slurm.arguments(env_file=slurm.folder / "all", allow="SITE_A:SITE_B")
    (slurm.folder / "all").write_text("SITE_A=1\nUCX_IB_NUM_PATHS=4\n")
    seen = slurm.tasks_see(f"--jobid={job}")
    assert seen["SITE_A"] == "1"
    assert "UCX_IB_NUM_PATHS" not in seen


def test_a_wrong_argument_keeps_no_job_from_running(slurm, agent):
    slurm.arguments(agent=agent.address, timeout="soon", colour="red")

    def a_job_is_reported() -> bool:
        """Not every one: the usual 50 ms, which such a timeout leaves, are soon over on a busy
        machine."""
        job = slurm.run("srun", "-N1", "printenv", "SLURM_JOB_ID").strip()
        return wait_until(lambda: bool(agent.of(job, "start") and agent.of(job, "end")), 2)

    assert wait_until(a_job_is_reported, 20)
    assert "argument timeout must be 10 to 100 milliseconds" in slurm.log()
    assert 'unknown argument "colour"' in slurm.log()


def test_a_munged_that_hangs(slurm):
    said = "was not reported: no answer within 100 ms"
    before = slurm.log().count(said)
    with Agent(slurm.munge_socket) as agent, socket.socket(socket.AF_UNIX) as munged:
        munged.bind(str(slurm.folder / "hanging"))
        munged.listen(64)
        slurm.arguments(agent=agent.address, munge_socket=slurm.folder / "hanging")
        for _ in range(3):
            slurm.run("srun", "-N1", "true")
        assert agent.events == []
    assert slurm.log().count(said) > before


@pytest.mark.parametrize(
    "jobs", [40, pytest.param(1000, marks=[pytest.mark.long, pytest.mark.timeout(1800)])]
)
def test_jobs_while_the_agent_fails(slurm, jobs):
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
