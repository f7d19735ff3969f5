"""The plugin's hooks under ASan and UBSan in a stand-in for Slurm, and under UBSan inside Slurm."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator

import pytest

from sar_lab.live.munge_daemon import MungeDaemon
from sar_lab.live.process import wait_until
from tests.worlds.live.built import built
from tests.worlds.live.events import FAILURES, Agent
from tests.worlds.live.spank import assert_no_report, spank_cluster, to_file

pytestmark = pytest.mark.live
Host = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def munge() -> Iterator[MungeDaemon]:
    with MungeDaemon() as munge:
        yield munge


@pytest.fixture
def host(munge, tmp_path) -> Host:
    """Exit code, what tasks or hooks were given, and the log."""

    def call(hook: str, traffic: str, *arguments: str, **env: str) -> tuple[int, str, str]:
        words = [f"munge_socket={munge.socket}", f"state={tmp_path}/kept", "timeout=100"]
        words += arguments
        done = subprocess.run(
            [built("slurm_spank", "spank_host"), hook, traffic, *words],
            env={"PATH": os.environ["PATH"], "SLURM_NODELIST": "n[1-4]"} | to_file(tmp_path) | env,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert_no_report(tmp_path)
        return done.returncode, done.stdout, done.stderr

    return call


def with_its_key(host: Host, *words: str) -> tuple[int, str, str]:
    """A step that the agent answered in time: a sanitized program on a busy machine may take longer
    than the 300 ms for which a step waits for an agent that is away."""
    for _ in range(20):
        answer = host("remote", *words)
        if "had no routing key" not in answer[2]:
            break
    return answer


def test_a_job_s_life(host, munge, tmp_path):
    with Agent(munge.socket) as agent:
        to = f"agent={agent.address}"
        assert host("local", "ring", to) == (0, "hooks: SPANK_SAR_TRAFFIC=ring\n", "")
        assert host("prolog", "ring", to, "debug=1")[0] == 0
        agent.answer = {"ok": True, "env": {"UCX_IB_NUM_PATHS": "1", "HOME": "/"}}
        code, given, said = with_its_key(host, "ring", to, "debug=1")
        assert (code, given) == (0, "tasks: UCX_IB_NUM_PATHS=1\n")
        assert "HOME is not in the list of argument allow" in said
        site = tmp_path / "site-7"
        site.write_text("UCX_IB_NUM_PATHS=2\nUCX_IB_LID_PATH_BITS=1\n")
        given = with_its_key(host, "-", to, f"env_file={tmp_path}/site-%j")[1]
        paths = "tasks: UCX_IB_NUM_PATHS=1\ntasks: UCX_IB_NUM_PATHS=2\n"
        assert given == paths + "tasks: UCX_IB_LID_PATH_BITS=1\n"
        assert host("epilog", "ring", to)[0] == 0
        assert host("remote", "ring", to)[1] == ""
        agent.heard("7", "end")
    assert [e.payload["event"] for e in agent.of("7")].count("start") == 1
    assert {e.payload["user"] for e in agent.events} == {1000}


def test_inside_slurm():
    with spank_cluster("n[1-4]", plugin="sar_spank-ubsan.so") as slurm:
        with Agent(slurm.munge_socket) as agent:
            slurm.arguments(agent=agent.address, debug=1)
            agent.answer = {"ok": True}
            slurm.run("srun", "-N2", "--sar-traffic=ring", "true")
            agent.answer = {"ok": True, "env": {"UCX_IB_NUM_PATHS": "1"}}
            assert slurm.tasks_see("-N2", "--sar-traffic=ring")["UCX_IB_NUM_PATHS"] == "1"
            assert slurm.attempt("srun", "--sar-traffic=bogus", "true").returncode != 0
            assert wait_until(lambda: len(agent.events) >= 9, 10)
        for failure in FAILURES.values():
            with failure() as address:
                slurm.arguments(agent=address, colour="red")
                slurm.run("srun", "-N2", "true")
        slurm.wait_idle()
        assert "was reported; the agent answered" in slurm.log()
