"""The job source `pyslurm`: its `Jobs.load()`, libslurm in this process, which is the fastest.

pyslurm is built against one libslurm and requires its exact major.minor, so it is an optional extra
and imported only when it is configured. Of its 23.02 and later, we rely on `Jobs.load()`, a mapping
whose values have the attributes read below, and on errors that are `PyslurmError`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection
from importlib import import_module
from typing import Any

from sar_agent.errors import InputError, Unavailable
from sar_agent.jobs.record import PENDING, JobRecord, traffic_hint
from sar_agent.jobs.source import Poll, kept_of_queue
from sar_agent.slurm.settings import SlurmSettings
from sar_agent.slurm.sinfo import allocated_nodes
from sar_agent.slurm.states import RUNNING_STATES
from sar_agent.util.hostlist import expand

IMPORT_DEADLINE = 60.0
"""Seconds; where slurm.conf comes from slurmctld (configless), the import waits for that."""


class PyslurmSource:
    """Slurm's queue, read by libslurm with its own timeouts (`MessageTimeout` in slurm.conf).

    Raises `InputError` where pyslurm is not installed or does not fit the libslurm that is.
    """

    def __init__(self, states: Collection[str] = RUNNING_STATES) -> None:
        self.states = frozenset(states)
        _import_in_a_child()
        try:
            self._pyslurm: Any = import_module("pyslurm")
            self._load = self._pyslurm.Jobs.load
        except (ImportError, AttributeError, OSError, SystemExit) as error:
            raise InputError(
                f"slurm.source = 'pyslurm', but no pyslurm with Jobs.load can be used ({error})",
                remedy="pip install 'sar-agent[pyslurm]' in your Slurm's major.minor, or use "
                "squeue",
            ) from error
        self._error: Any = getattr(self._pyslurm, "PyslurmError", RuntimeError)

    @classmethod
    def configured(cls, settings: SlurmSettings) -> PyslurmSource:
        """The job source `pyslurm`."""
        return cls(settings.states)

    def poll(self) -> Poll:
        """The jobs that run now. Raises `Unavailable`."""
        try:
            jobs = list(self._load().values())
        except (self._error, OSError, RuntimeError) as error:
            raise Unavailable(f"pyslurm cannot load the jobs ({error})") from error
        skipped: list[str] = []
        records: list[JobRecord] = []
        for job in jobs:
            try:
                record = _record(job, self.states)
            except (AttributeError, TypeError, ValueError, InputError) as error:
                skipped.append(f"{error}"[:200])
            else:
                records += [record] if record else []
        what = "pyslurm gave {} entries that are not jobs"
        return kept_of_queue(records, skipped, len(jobs), what)

    def allocated(self, hosts: Collection[str]) -> frozenset[str]:
        """Those of `hosts` that the command sinfo shows with a job. Raises `Unavailable` where it
        does not say that of each of them."""
        return allocated_nodes(hosts)


def _import_in_a_child() -> None:
    """Import pyslurm where it may end the process: libslurm calls exit() when it is loaded and
    finds no slurm.conf, or one with an error. Raises `InputError` with its words."""
    if "pyslurm" in sys.modules:
        return
    try:
        done = subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; import pyslurm"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=IMPORT_DEADLINE,
        )
    except subprocess.TimeoutExpired:
        said = f"no answer within {IMPORT_DEADLINE:g} s"
    else:
        if not done.returncode:
            return
        lines = (done.stderr or done.stdout).strip().splitlines()
        said = lines[-1][:200] if lines else f"exit code {done.returncode}"
    raise InputError(
        f"slurm.source = 'pyslurm', but importing pyslurm fails ({said})",
        remedy="pip install 'sar-agent[pyslurm]' in your Slurm's major.minor, give the agent a "
        "readable slurm.conf (SLURM_CONF), or use squeue",
    )


def _record(job: Any, states: Collection[str]) -> JobRecord | None:
    nodes = job.allocated_nodes
    if job.state == PENDING:
        nodes = getattr(job, "scheduled_nodes", None)
    if job.state not in {*states, PENDING} or not nodes:
        return None
    return JobRecord(
        _identity(job),
        expand(nodes),
        job.state,
        job.user_name or str(job.user_id),
        job.partition or "",
        float(job.start_time) if job.start_time else None,
        traffic_hint(job.admin_comment or "", job.comment or ""),
        None if job.user_id is None else int(job.user_id),
        (str(int(job.id)),),
    )


def _identity(job: Any) -> str:
    """The id as squeue prints it. pyslurm returns None for 0, so task 0 and component 0 are None;
    only tasks of an array hold nodes, and these have an `array_id`."""
    if job.heterogeneous_id:
        return f"{int(job.heterogeneous_id)}+{int(job.heterogeneous_offset or 0)}"
    if job.array_id:
        return f"{int(job.array_id)}_{int(job.array_task_id or 0)}"
    return str(int(job.id))
