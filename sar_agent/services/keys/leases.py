"""Leases of routing keys: which job has which LID offset for which phase, on disk, so that keys
survive a restart.

An offset is leased host by host. A table knows destinations only, so two jobs may have keys under
one offset as long as they share no port; the key of one job then leaves the other's rows alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from sar_agent.routing.lid_offsets import FIRST_KEY
from sar_agent.services.keys.tickets import TrafficWish
from sar_agent.util.pace import steady_time
from sar_agent.util.plural import plural
from sar_agent.util.store import JsonStore


class Lease(BaseModel):
    """A key that is, or was, in force for `phase` of `job` under LID offset `offset`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    job: str
    phase: str
    uid: int | None
    """The job's owner; None where the queue does not say."""
    offset: int
    traffic: str | None
    pairs: tuple[int, ...]
    nodes: str | None
    tasks: str | None
    hosts: tuple[str, ...]
    """Hosts of the ranks, in Slurm's order, by which ranks are counted."""
    ends: float | None
    """End of the lease in Unix seconds; None: it ends with the job."""
    made_at: float
    """Unix seconds at which the key was made."""
    own: int
    """Most flows of the phase over one link when it was made."""
    total: int
    """Most flows over one link including those of all other keys."""
    seconds: float
    """Seconds from the request until the key was in force."""
    lost: str = ""
    """Why the key was dropped, so that its traffic takes the shelter's tables; empty where it was
    not."""
    fabric: str = ""
    """Digest of the fabric that the rows were made for, in hexadecimal."""

    @property
    def key(self) -> tuple[str, str]:
        """Job and phase, by which clients name the key."""
        return self.job, self.phase

    @property
    def wish(self) -> TrafficWish:
        """The traffic that the key was requested for."""
        return TrafficWish(self.traffic, self.pairs, self.nodes, self.tasks)

    def left(self, now: float) -> float | None:
        """Seconds until the lease ends; None: it ends with the job."""
        return None if self.ends is None else max(0.0, self.ends - now)


class Leases:
    """`leases.json` in `folder`; by (job, phase)."""

    def __init__(self, folder: Path) -> None:
        self._store: JsonStore[list[Lease]] = JsonStore(
            folder / "leases.json", list[Lease], "no job has a key"
        )
        self._leases = {lease.key: lease for lease in self._store.load() or ()}

    def __iter__(self) -> Iterator[Lease]:
        return iter(list(self._leases.values()))

    def __len__(self) -> int:
        return len(self._leases)

    def get(self, key: tuple[str, str]) -> Lease | None:
        """The lease, if there is one."""
        return self._leases.get(key)

    def save(self, leases: Iterable[Lease]) -> None:
        """Add or replace leases, and save all at once."""
        new = {lease.key: lease for lease in leases}
        if new:
            self._leases |= new
            self._store.save(list(self))

    def drop(self, keys: Collection[tuple[str, str]]) -> None:
        """Remove leases, and save."""
        if gone := [key for key in keys if key in self._leases]:
            for key in gone:
                del self._leases[key]
            self._store.save(list(self))

    def over(self, now: float | None = None) -> list[Lease]:
        """The leases whose end has passed."""
        at = steady_time() if now is None else now
        return [lease for lease in self if lease.ends is not None and at >= lease.ends]


def free_offset(
    offsets: int, ports: Collection[int], taken: Iterable[tuple[int, Collection[int]]]
) -> int | None:
    """The lowest LID offset for keys, below `offsets`, that is free at all `ports`; None if there
    is none. `taken`: offset and ports of each lease."""
    own = set(ports)
    busy = {offset for offset, others in taken if not own.isdisjoint(others)}
    return next((offset for offset in range(FIRST_KEY, offsets) if offset not in busy), None)


def words_of(leases: Collection[Lease]) -> str:
    """For `sar-agent status`."""
    offsets, jobs = {lease.offset for lease in leases}, {lease.job for lease in leases}
    lost = sum(bool(lease.lost) for lease in leases)
    return (
        f"{len(leases)} leased to {plural(len(jobs), 'job')} at {len(offsets)} LID offsets"
        + f", {lost} of them lost on the present fabric" * bool(lost)
    )
