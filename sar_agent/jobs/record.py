"""One job as a source reports it, at the level of host names.

This module does not know the fabric: `demand/endpoints.py` maps hosts to terminals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

PENDING = "PENDING"
"""The state of a job that waits; its hosts are those that Slurm plans for it."""


class JobRecord(NamedTuple):
    """One running job. (A named tuple is made in a fifth of the time of a frozen data class.)

    `id` is the source's own text, from Slurm `17`, `6_2` for a task of an array, `9` for a
    heterogeneous job (its components `9+0`, `9+1`, … are one record, see `merge_components`).
    `hosts` are node names, each once. `start` is in Unix seconds, None if unknown. `traffic` is
    the word after `sar:` in the job's comment, None if there is no such word. `uid` is the
    owner's, None if unknown. `raw` are Slurm's plain numbers of the job (of each component), where
    the source has them.
    """

    id: str
    hosts: tuple[str, ...]
    state: str
    user: str = ""
    partition: str = ""
    start: float | None = None
    traffic: str | None = None
    uid: int | None = None
    raw: tuple[str, ...] = ()

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numbers by which Slurm's hooks name the job: each task of an array has its own."""
        return self.raw or ((self.id,) if self.id.isdecimal() else ())

    @property
    def weight(self) -> float:
        """How much its terminals send compared with full speed: 0.2 for a hint `weight=0.2`.

        It is 1.0 without a hint, and for a hint out of range: a comment must not stop the agent.
        """
        hint = _WEIGHT.fullmatch(self.traffic) if self.traffic else None
        weight = float(hint[1]) if hint else 1.0
        return weight if LEAST_WEIGHT <= weight <= MOST_WEIGHT else 1.0


LEAST_WEIGHT, MOST_WEIGHT = 0.001, 100.0
_WEIGHT = re.compile(r"weight=(\d+\.?\d*|\.\d+)")
_TRAFFIC = re.compile(r"(?:^|[\s;,])sar:([A-Za-z0-9_.:=+\-]+)")


def traffic_hint(*comments: str) -> str | None:
    """The word after `sar:` in the first of `comments` that has one: `x sar:ring` → `ring`."""
    for comment in comments:
        if "sar:" in comment and (match := _TRAFFIC.search(comment)):
            return match[1]
    return None


def merge_components(records: Iterable[JobRecord]) -> tuple[JobRecord, ...]:
    """`records` with the components `9+0`, `9+1`, … of a heterogeneous job made one record, `9`.

    Components start together, normally by one `srun` with one MPI_COMM_WORLD, so their nodes
    send to each other. As separate records, a job of two components on one switch each would look
    like two single-switch jobs. The first component gives state, user and partition.
    """
    merged: dict[str, JobRecord] = {}
    for record in records:
        leader = record.id.partition("+")[0]
        known = merged.get(leader)
        if known is None:
            merged[leader] = record._replace(id=leader) if leader != record.id else record
        else:
            merged[leader] = known._replace(
                hosts=tuple(dict.fromkeys(known.hosts + record.hosts)),
                start=record.start if known.start is None else known.start,
                traffic=known.traffic or record.traffic,
                raw=known.raw + record.raw,
            )
    return tuple(merged.values())
