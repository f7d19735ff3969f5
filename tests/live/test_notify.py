"""sar-notify always exits with 0, and soon; a controller whose hooks are failed by everyone."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sar_lab.live.process import wait_until
from sar_lab.live.slurm import SlurmCluster
from tests.worlds.live.built import ROOT, built
from tests.worlds.live.events import FAILURES, Agent
from tests.worlds.live.jobs import ended
from tests.worlds.live.spank import assert_no_report, to_file

pytestmark = pytest.mark.live
JOB = {"SLURM_JOB_ID": "7", "SLURM_JOB_UID": "1000", "SLURM_JOB_NODELIST": "n[1-4]"}


STARVED = "sar-notify: perhaps this event was not reported: 180 ms are over\n"


def notify(*words: object, **env: str) -> str:
    """What it says on stderr; it is called again where the machine let it run for too short."""
    said: list[str] = []

    def spoke() -> bool:
        with TemporaryDirectory() as folder:
            started = time.monotonic()
            with notifier(Path(folder), *words, **env) as process:
                said.append(process.communicate(timeout=120)[1])
            print(f"{1000 * (time.monotonic() - started):.0f} ms")
            assert_no_report(Path(folder))
        assert process.returncode == 0, said
        return STARVED not in said[-1]

    assert wait_until(spoke, 60), said
    return said[-1]


def notifier(folder: Path, *words: object, **env: str) -> subprocess.Popen[str]:
    """One process of it; sanitizers report to `folder`."""
    return subprocess.Popen(
        [built("slurm_spank", "sar-notify-asan"), *map(str, words)],
        env={"PATH": os.environ["PATH"]} | to_file(folder) | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def in_time(*words: object, **env: str) -> str:
    """Repeats the call until its child was in time: a sanitized one on a busy machine may need
    several tries. Late messages are still delivered."""
    said: list[str] = []

    def answered() -> bool:
        said.append(notify(*words, "timeout=100", **env))
        return "no answer within 100 ms" not in said[-1]

    assert wait_until(answered, 60), said
    return said[-1]


def test_the_message_has_all_fields(munge):
    with Agent(munge) as agent:
        to = (f"agent={agent.address}", f"munge_socket={munge}")
        assert in_time("start", *to, **JOB, SPANK_SAR_TRAFFIC="ring") == ""
        said = in_time("end", *to, "debug=1", **JOB)
        assert said == f"sar-notify: end of job 7 was sent to {agent.address}\n"
        in_time("end", *to, SLURM_JOB_ID="8", SPANK_SAR_TRAFFIC='"bogus"', SLURM_JOB_UID="me")
        start = agent.heard("7", "start")[0]
        end = agent.heard("7", "end")[0]
        other = agent.heard("8", "end")[0]
    assert start.uid == os.getuid()
    named = ("v", "event", "job", "user", "nodes", "traffic")
    assert [start.payload[key] for key in named] == [1, "start", "7", 1000, "n[1-4]", "ring"]
    assert start.payload["id"] != end.payload["id"]
    assert "traffic" not in end.payload
    assert not {"traffic", "user", "nodes"} & set(other.payload)


def test_the_answer_is_kept_for_the_job(munge, tmp_path):
    with Agent(munge) as agent:
        agent.answer = {"ok": True, "env": {"UCX_IB_NUM_PATHS": "1", "bad name": "x"}}
        to = (f"agent={agent.address}", f"munge_socket={munge}", f"state={tmp_path}/kept")
        assert in_time("start", *to, **JOB) == ""
        assert (tmp_path / "kept" / "7").read_text() == "UCX_IB_NUM_PATHS=1\n"
        assert wait_until(lambda: not speaking_for(tmp_path), 10)  # from a try that was late
        assert in_time("end", *to, **JOB) == ""
        assert list((tmp_path / "kept").iterdir()) == []
        agent.answer = {"ok": False, "error": "you are not SlurmUser"}
        said = in_time("start", *to, **JOB)
        assert said == "sar-notify: start of job 7 was refused: you are not SlurmUser\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "sar-notify start|end"),
        (["begin"], "sar-notify start|end"),
        (["start"], "was not reported: no agent is given"),
        (["start", "agent=nowhere"], "neither HOST:PORT nor a path"),
        (["start", "agent=/nonexistent"], "/nonexistent: No such file or directory"),
        (["start", "agent=no.such.host.invalid:1"], "was not reported: "),
        (["start", "agent=localhost:99999999"], "was not reported: "),
        (
            ["start", "agent=/dev/null", "munge_socket=/nonexistent"],
            "/dev/null: Connection refused",
        ),
    ],
)
def test_failures_are_reported(munge, words, said):
    if words and not any("munge_socket" in word for word in words):
        words = [*words, f"munge_socket={munge}"]
    assert said in (in_time(*words, **JOB) if "start" in words else notify(*words, **JOB))


def test_a_munge_that_is_not_there(munge):
    with Agent(munge) as agent:
        to = (f"agent={agent.address}", "munge_socket=/nonexistent")
        assert "was not reported: munge: " in in_time("start", *to, **JOB)


@pytest.mark.parametrize("job", ["", "x", "-1", "99999999999", "7x"])
def test_outside_a_hook(munge, job):
    said = notify("start", f"munge_socket={munge}", SLURM_JOB_ID=job)
    assert said.startswith("sar-notify: SLURM_JOB_ID is not set")


@pytest.mark.parametrize("failure", FAILURES)
def test_an_agent_that_fails(munge, failure, tmp_path):
    with FAILURES[failure]() as address:
        to = (f"agent={address}", f"munge_socket={munge}")
        assert "was not reported: " in notify("start", *to, **JOB)
        if failure == "dead":
            assert "was not reported: " in in_time("start", *to, **JOB)


def speaking_for(folder: Path) -> list[Path]:
    """Children of sar-notify that still try: those whose command names this folder."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it ended meanwhile
            if str(folder).encode() in command.read_bytes():
                found.append(command)
    return found


def test_jobs_of_a_controller_whose_hooks_fail(tmp_path):
    """The scripts of deploy/slurm, with sar-notify missing and with an agent that is stopped."""
    hooks = {}
    for hook in ("slurmctld-prolog", "slurmctld-epilog"):
        hooks[hook] = tmp_path / hook
        hooks[hook].write_text((ROOT / "deploy/slurm" / hook).read_text())
        hooks[hook].chmod(0o755)
    extra = "PrologSlurmctld={}\nEpilogSlurmctld={}\n".format(*hooks.values())
    with SlurmCluster(extra=extra) as slurm, FAILURES["stopped"]() as address:
        ids = [submit(slurm) for _ in range(5)]
        program = built("slurm_spank", "sar-notify")
        for hook in hooks.values():
            text = hook.read_text().replace("/usr/bin/sar-notify", str(program))
            here = f"agent={address} munge_socket={slurm.munge_socket}"
            write(hook, text.replace("agent=/run/sar-agent/events.sock", here))
        ids += [submit(slurm) for _ in range(5)]
        assert wait_until(lambda: not slurm.squeue("-h"), 60)
        for job in ids:
            assert "JobState=COMPLETED" in ended(slurm, job)
        assert "DRAIN" not in slurm.run("scontrol", "show", "node")
        assert "Restarts=0" in slurm.run("scontrol", "-o", "show", "job", ids[-1])


def submit(slurm: SlurmCluster) -> str:
    return slurm.run("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "srun true").strip()


def write(file: Path, text: str) -> None:
    """Anew beside it, then renamed: it may be running."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.chmod(0o755)
    new.rename(file)
