"""The live source against stand-ins for squeue that fail in every way it can."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from sar_agent.errors import Unavailable
from sar_agent.slurm.squeue import SqueueSource, parse_poll
from tests.worlds.fake_squeue import fake_squeue

M = "mark|"


def row(job="7", nodes="n[1-2]", comment="(null)"):
    return f"{job}|RUNNING|{nodes}|batch|root|x|2|5|{comment}|1000|1{job}|\n"


def test_no_shell_and_no_foreign_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("SQUEUE_PARTITION", "debug")
    spy = script(
        tmp_path, "import os, sys\nopen('{0}', 'w').write(repr((sys.argv[1:], dict(os.environ))))"
    )
    SqueueSource([spy], states={"RUNNING"}).poll()
    arguments, environment = eval((tmp_path / "out").read_text())
    assert "--states=PENDING,RUNNING" in arguments
    assert "SQUEUE_PARTITION" not in environment
    assert environment["SLURM_TIME_FORMAT"] == "%s"
    # Any account can read arguments while squeue runs, and could write the mark into a comment.
    mark = environment["SQUEUE_FORMAT"].partition("|")[0]
    assert len(mark) == 16 and not any(mark in argument for argument in arguments)


def test_pending_jobs_are_not_running_and_have_the_nodes_that_slurm_plans():
    waits = "|PENDING||batch|root|x|2|1795221989|(null)|1000|"
    text = (
        M + row() + M + f"9{waits}9|n[3-4]\n" + M + f"10{waits}10|\n" + M + f"11{waits}11|(null)\n"
    )
    text += M + f"12+0{waits}12|n5\n" + M + f"12+1{waits}13|n6\n"
    poll = parse_poll(text, "mark")
    assert ([job.id for job in poll.records], poll.skipped) == (["7"], 0)
    assert [(job.id, job.hosts, job.start) for job in poll.planned] == [
        ("9", ("n3", "n4"), 1795221989.0), ("12", ("n5", "n6"), 1795221989.0)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "<html>502</html>\n",
        M + "x\n" + M + "y\n" + M + row(),
        "warning: a\nwarning: b\n" + M + row(),
    ],
)
def test_mostly_garbage_is_no_queue(text):
    with pytest.raises(Unavailable, match=r"squeue printed .* not jobs, the first: "):
        parse_poll(text, "mark")


def shell(folder: Path, body: str) -> str:
    return script(folder, body, "/bin/sh")


def script(folder: Path, body: str, interpreter: str = sys.executable) -> str:
    path = folder / "squeue"
    path.write_text(f"#!{interpreter}\n{body.replace('{0}', str(folder / 'out'))}\n")
    path.chmod(0o755)
    return str(path)


def test_failing_is_retried_and_then_said(tmp_path):
    failing = shell(
        tmp_path,
        "printf x >> {0}; printf 'slurm_load_jobs error:\\n  Unable to contact' >&2; exit 1",
    )
    with pytest.raises(Unavailable, match="exit code 1: slurm_load_jobs error: Unable to contact"):
        SqueueSource([failing], deadline=3).poll()
    assert len((tmp_path / "out").read_text()) >= 2


def test_a_passing_failure_is_survived(tmp_path):
    good = fake_squeue(tmp_path, [{"%i": "7"}])
    flaky = script(
        tmp_path,
        "import os, sys\n"
        "if not os.path.exists('{0}'):\n    open('{0}', 'w')\n    sys.exit(1)\n"
        f"os.execv({good!r}, [{good!r}, *sys.argv[1:]])",
    )
    assert [job.id for job in SqueueSource([flaky]).poll().records] == ["7"]


def test_hanging_ends_at_the_deadline_with_its_children(tmp_path):
    hanging = shell(tmp_path, "sleep 600 & echo $! > {0}; wait")
    with pytest.raises(Unavailable, match="no answer within 2 s"):
        SqueueSource([hanging], deadline=2).poll()
    child = Path("/proc") / (tmp_path / "out").read_text().strip() / "status"
    end = time.monotonic() + 10  # killed, but who reaps an orphan is up to init
    while child.exists() and "State:\tZ" not in child.read_text() and time.monotonic() < end:
        time.sleep(0.05)
    assert not child.exists() or "State:\tZ" in child.read_text()


def test_latin_1_comments_are_no_obstacle(tmp_path):
    binary = script(
        tmp_path,
        "import os\nmark = os.environ['SQUEUE_FORMAT'].partition('|')[0]\n"
        "os.write(1, mark.encode() + b'|7|RUNNING|n1|b|r|a|1|5|caf\\xe9 sar:ring|0|7|\\n')",
    )
    assert SqueueSource([binary]).poll().records[0].traffic == "ring"


@pytest.mark.parametrize("shown", ["", "the queue"])
def test_a_complaint_is_a_failed_poll_although_squeue_succeeds(tmp_path, shown):
    good = fake_squeue(tmp_path, [{"%i": "7"}] if shown else [])
    complains = shell(tmp_path, f"echo 'squeue: error: no right to see jobs' >&2; exec {good}")
    with pytest.raises(Unavailable, match="exit code 0, but wrote on stderr: squeue: error: no ri"):
        SqueueSource([complains], deadline=1).poll()


def test_sinfo_is_called_as_squeue_is(tmp_path):
    fake_squeue(tmp_path, [{"%N": "n[1-2]"}, {"%N": "n5"}])
    source = SqueueSource(["env", "A=1", fake_squeue(tmp_path, [{"%N": "n5"}])])
    assert source.allocated({"n1", "n2", "n5"}) == {"n5"}
    with pytest.raises(Unavailable, match=r"does not show n9$"):
        source.allocated({"n1", "n9"})
    (tmp_path / "fake-sinfo").unlink()
    with pytest.raises(Unavailable, match="No such file"):
        source.allocated({"n1"})
    with pytest.raises(Unavailable, match="how to call sinfo is not known from"):
        SqueueSource(["/opt/queue"]).allocated({"n1"})
    (tmp_path / "fake-sinfo").symlink_to("/bin/true")
    with pytest.raises(Unavailable, match="not the output of sinfo"):  # PrivateData=nodes
        source.allocated({"n1"})
