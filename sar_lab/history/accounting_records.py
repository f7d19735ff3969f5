"""The common part of the readers of accounting records: rows of text become jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from sar_agent.errors import InputError
from sar_agent.util.hostlist import expand
from sar_lab.history.job_history import HistoryBuilder, JobHistory
from sar_lab.history.times import EARLIEST

NO_NODES = frozenset({"", "None assigned", "None", "(null)", "Unknown"})
STILL_RUNS = frozenset({"RUNNING", "SUSPENDED", "COMPLETING", "RESIZING"})
CUT = "lines that are truncated or not a record"


@dataclass
class AccountingRecords:
    """Collects rows into a `HistoryBuilder`; components `9+0`, `9+1` of a job become job `9`."""

    name: str
    builder: HistoryBuilder = field(init=False)
    _parts: dict[tuple[str, float, bool], tuple[float, list[str]]] = field(default_factory=dict)
    _still: int = 0

    def __post_init__(self) -> None:
        self.builder = HistoryBuilder(self.name)

    def add(
        self,
        id: str,
        start: float | None,
        end: float | None,
        nodes: str,
        state: str = "",
        *,
        unix: bool = False,
    ) -> None:
        """One record; `state` as sacct prints it (`CANCELLED by 123`), empty where unknown; `unix`
        as for `HistoryBuilder.add`."""
        if "." in id:
            return self.builder.leave_out("records of job steps (their jobs are counted)", id)
        if start is None:
            return self.builder.leave_out("jobs that never started", id)
        if start < EARLIEST or (end is not None and end < EARLIEST):
            return self.builder.leave_out("jobs of 1970 (the clock was not set)", id)
        if end is None and state and state.split()[0].rstrip("+") not in STILL_RUNS:
            return self.builder.leave_out("jobs that are over, but without an end time", id)
        if end is None:
            self._still += 1
        try:
            hosts = () if nodes.strip() in NO_NODES else expand(nodes.strip())
        except InputError:
            return self.builder.leave_out("jobs whose node list cannot be read", id)
        leader, plus, _ = id.partition("+")
        if not plus:
            return self.builder.add(id, start, inf if end is None else end, hosts, unix=unix)
        last, together = self._parts.setdefault((leader, start, unix), (0.0, []))
        together += hosts
        self._parts[leader, start, unix] = max(last, inf if end is None else end), together
        return None

    def build(self) -> JobHistory:
        """Raises `InputError` where no job is left."""
        for (id, start, unix), (end, hosts) in self._parts.items():
            self.builder.add(id, start, end, dict.fromkeys(hosts), unix=unix)
        if self._still:
            self.builder.remark(
                f"{self._still:,} {'job was' if self._still == 1 else 'jobs were'} still running "
                "when the record was made."
            )
        return self.builder.build()
