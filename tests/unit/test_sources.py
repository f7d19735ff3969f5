"""pyslurm against a stand-in.

No pyslurm can be installed where this project is tested (it demands the exact libslurm), so the
module here is a fake: it holds the source to what pyslurm 25.11's `Jobs.load()` is documented to
give, its quirk of None for 0 included. It is no proof that a real one works.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from sar_agent.config.model import parse_config
from sar_agent.errors import InputError, Unavailable
from sar_agent.jobs.record import JobRecord
from sar_agent.jobs.source import job_source
from sar_agent.slurm.pyslurm_source import PyslurmSource
from sar_agent.slurm.squeue import SqueueSource


class PyslurmError(Exception):
    """As pyslurm names it."""


def a_job(id: int, **more: Any) -> SimpleNamespace:
    """pyslurm's Job, as far as we read it: None is given for a 0, and where there is nothing."""
    given = {
        "allocated_nodes": "n[1-2]",
        "state": "RUNNING",
        "user_id": 1000,
        "user_name": "alice",
        "partition": "batch",
        "start_time": 1795221989,
        "comment": None,
        "admin_comment": None,
        "array_id": None,
        "array_task_id": None,
        "heterogeneous_id": None,
        "heterogeneous_offset": None,
    }
    return SimpleNamespace(id=id, **(given | more))


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> dict[int, Any]:
    """A fake module `pyslurm`; the mapping is what `Jobs.load()` gives."""
    jobs: dict[int, Any] = {}

    def load() -> dict[int, Any]:
        if -1 in jobs:
            raise PyslurmError("Unable to contact slurm controller (connect failure)")
        return dict(jobs)

    module = ModuleType("pyslurm")
    module.Jobs = SimpleNamespace(load=load)  # type: ignore[attr-defined]
    module.PyslurmError = PyslurmError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyslurm", module)
    return jobs


def test_pyslurm_s_jobs_are_those_of_squeue(queue: dict[int, Any]) -> None:
    queue[7] = a_job(7, comment="x sar:ring", admin_comment="sar:bitcomp")
    queue[8] = a_job(8, state="PENDING", allocated_nodes=None, start_time=None)
    queue[11] = a_job(11, state="PENDING", allocated_nodes=None, scheduled_nodes="n[3-4]")
    queue[9] = a_job(9, array_id=9, array_task_id=3)
    queue[10] = a_job(10, array_id=9, array_task_id=None)
    queue[20] = a_job(20, heterogeneous_id=20, allocated_nodes="n3", user_name=None, user_id=0)
    queue[21] = a_job(21, heterogeneous_id=20, heterogeneous_offset=1, allocated_nodes="n[4-5]")
    queue[30] = a_job(30, state="COMPLETING")
    start = 1795221989.0
    alice: Any = {"user": "alice", "partition": "batch", "start": start, "uid": 1000}
    poll = PyslurmSource().poll()
    assert [(job.id, job.hosts) for job in poll.planned] == [("11", ("n3", "n4"))]
    assert poll.records == (
        JobRecord("7", ("n1", "n2"), "RUNNING", traffic="bitcomp", raw=("7",), **alice),
        JobRecord("9_3", ("n1", "n2"), "RUNNING", raw=("9",), **alice),
        JobRecord("9_0", ("n1", "n2"), "RUNNING", raw=("10",), **alice),
        JobRecord("20", ("n3", "n4", "n5"), "RUNNING", "0", "batch", start, None, 0, ("20", "21")),
    )


def test_pyslurm_away_and_nonsense(queue: dict[int, Any]) -> None:
    source = PyslurmSource()
    assert source.poll().records == ()
    queue.update({1: a_job(1), 2: a_job(2), 3: SimpleNamespace(id=3)})
    poll = source.poll()
    assert (len(poll.records), poll.skipped) == (2, 1)
    assert "allocated_nodes" in poll.first_skipped
    del queue[1], queue[2]
    with pytest.raises(Unavailable, match="1 of 1 entries that are not jobs"):
        source.poll()
    queue[-1] = None
    with pytest.raises(Unavailable, match="Unable to contact slurm controller"):
        source.poll()


def test_a_libslurm_that_ends_the_process_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code = "import os, sys\nprint('fatal: no slurm.conf', file=sys.stderr)\nos._exit(1)\n"
    (tmp_path / "pyslurm.py").write_text(code)
    monkeypatch.delitem(sys.modules, "pyslurm", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"importing pyslurm fails \(fatal: no slurm.conf\)"):
        PyslurmSource()


@pytest.mark.parametrize("module", [None, ModuleType("pyslurm")])
def test_no_pyslurm_or_an_old_one_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType | None
) -> None:
    monkeypatch.setitem(sys.modules, "pyslurm", module)
    with pytest.raises(InputError, match=r"sar-agent\[pyslurm\]"):
        PyslurmSource()


def test_the_settings_name_the_source(queue: dict[int, Any]) -> None:
    def source(text: str) -> Any:
        return job_source(parse_config(f"[slurm]\n{text}").slurm)

    assert isinstance(source(""), SqueueSource)
    assert isinstance(source('source = "pyslurm"'), PyslurmSource)
