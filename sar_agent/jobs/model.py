"""`Job` and `JobMix`: running jobs as sets of terminals of one fabric.

Two mixes are equal if their sets of terminal sets are, whatever the ids: a job that replaces
another one on the same hosts changes no route. The end of a job is a change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.util.plural import plural

Value = TypeVar("Value", np.int64, np.float64)


@dataclass(frozen=True, eq=False)
class Job:
    """One job: `terminals` is int32[N], ascending and unique, indices into the fabric."""

    id: str
    terminals: I32
    traffic: str | None = None
    """The user's hint of the traffic (`ring`, `stencil2d:4x4`, …), None without one."""
    weight: float = 1.0
    """How much its terminals send compared with full speed (a hint, a counter, a priority)."""
    rail: int = -1
    """Of a part (`demand/endpoints.py`): the rail whose ports these are; -1 for a whole job."""
    part_of: Job | None = None
    """Of a part: the job, with all its terminals."""

    @property
    def whole(self) -> Job:
        """The job that this is a part of, or this one."""
        return self.part_of or self

    @cached_property
    def declared(self) -> str:
        """The hint, if it says who sends to whom; else empty: an all-to-all is expected."""
        hint = self.traffic or ""
        return "" if hint in ("none", "alltoall") or hint.startswith("weight=") else hint

    @cached_property
    def key(self) -> bytes:
        """Equal for jobs that are the same to an engine, whatever their ids."""
        weight = b"" if self.weight == 1.0 else np.float64(self.weight).tobytes()
        return self.terminals.tobytes() + weight + self.declared.encode()


def make_job(
    id: str, terminals: Iterable[int], traffic: str | None = None, weight: float = 1.0
) -> Job:
    """A job of these terminals in any order, duplicates allowed."""
    return Job(id, np.array(sorted(set(terminals)), np.int32), traffic, weight)


@dataclass(frozen=True, eq=False)
class JobMix:
    """The running multi-switch jobs.

    Two mixes are equal when their sets of terminal sets are (and weights and declared traffic,
    where given): ids do not matter, because replacing a job by another on the same nodes changes no
    route (sar-2016, Section 3.2.1).
    """

    jobs: tuple[Job, ...]

    @classmethod
    def of(cls, jobs: Iterable[Job]) -> JobMix:
        """Jobs in a canonical order (largest first, then by terminals) so results do not depend
        on the order in which a source lists them."""
        return cls(tuple(sorted(jobs, key=lambda j: (-len(j.terminals), j.terminals.tolist()))))

    @cached_property
    def whole_jobs(self) -> tuple[Job, ...]:
        """The jobs that Slurm knows, in the order of their first parts."""
        return tuple({id(job.whole): job.whole for job in self.jobs}.values())

    @cached_property
    def whole_of(self) -> I32:
        """int32[J]: the place of each part's job in `whole_jobs`."""
        place = {id(job): j for j, job in enumerate(self.whole_jobs)}
        return np.array([place[id(job.whole)] for job in self.jobs], np.int32)

    def parts_of(self, job: str) -> tuple[int, ...]:
        """The indices of the parts of the job of this id; none where it is not in the mix."""
        return tuple(j for j, part in enumerate(self.jobs) if part.id == job)

    def largest(self, values: NDArray[Value]) -> NDArray[Value]:
        """[W]: of each whole job the largest of its parts' `values` [J]: a job goes on when all of
        its rails are done."""
        result = np.full(len(self.whole_jobs), values.dtype.type(0), values.dtype)
        np.maximum.at(result, self.whole_of, values)
        return result

    def words(self, what: str = "job") -> str:
        """`5 jobs`, or `5 jobs; on 4 rails 20 parts`."""
        said = plural(len(self.whole_jobs), what)
        rails = {job.rail for job in self.jobs} - {-1}
        if not rails:
            return said
        return f"{said}; on {plural(len(rails), 'rail')} {plural(len(self.jobs), 'part')}"

    @cached_property
    def key(self) -> frozenset[bytes]:
        """The value that equality compares."""
        return frozenset(job.key for job in self.jobs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobMix) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def digest(self, fabric: Fabric) -> bytes:
        """16 bytes that name the mix across fabrics with the same terminals, whatever the ids."""
        parts = {
            np.sort(fabric.terminal_guid[job.terminals]).tobytes() + job.key[job.terminals.nbytes :]
            for job in self.jobs
        }
        state = hashlib.blake2b(digest_size=16)
        for part in sorted(parts):
            state.update(len(part).to_bytes(8, "little") + part)
        return state.digest()

    @cached_property
    def offset(self) -> I32:
        """int32[J + 1] into `terminal`."""
        return np.cumsum([0, *(len(j.terminals) for j in self.jobs)], dtype=np.int32)

    @cached_property
    def terminal(self) -> I32:
        """int32[sum of N]: the jobs' terminals, job after job."""
        return np.concatenate([np.empty(0, np.int32), *(j.terminals for j in self.jobs)])

    def by_terminal(self, terminals: int) -> tuple[I32, I32]:
        """(int32[T + 1], int32[sum of N]): for each terminal the jobs on it."""
        job = np.repeat(np.arange(len(self.jobs), dtype=np.int32), np.diff(self.offset))
        order = np.argsort(self.terminal, kind="stable")
        offset = np.searchsorted(self.terminal[order], np.arange(terminals + 1)).astype(np.int32)
        return offset, job[order].astype(np.int32)

    def by_leaf(self, fabric: Fabric) -> tuple[I32, I32, I32]:
        """(int32[J + 1], leaf switch int32[·], terminals there int32[·]): sources per job."""
        leaf = fabric.terminal_switch[self.terminal].astype(np.int64)
        job = np.repeat(np.arange(len(self.jobs)), np.diff(self.offset))
        pair, count = np.unique(job * fabric.switches + leaf, return_counts=True)
        job, leaf = np.divmod(pair, fabric.switches)
        offset = np.searchsorted(job, np.arange(len(self.jobs) + 1)).astype(np.int32)
        return offset, leaf.astype(np.int32), count.astype(np.int32)
