"""What Slurm says of one job, at the level of host names.

Nothing here knows the fabric: mapping hosts to terminals is the next step's work (`jobs/model`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

RUNNING_STATES = frozenset(
    {"RUNNING", "CONFIGURING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING"}
)
"""The states that count as running unless the site's config says otherwise: the job holds its
nodes and may send.

CONFIGURING has its nodes (they boot, or the prolog runs): routes are there when it starts.
SUSPENDED and STOPPED hold their nodes and may go on at any moment without notice; under gang
scheduling they alternate every half minute, which must not make the routes swing with them.
COMPLETING is left out: its processes are gone or being killed, and squeue prints only the nodes
not yet given back (seen on 22.05: n[1,3,5-8], n[1,3,5], n[3,5], n3), so that counting it would
turn the end of one job into several changes.
"""

STATE_CODES = {
    "BF": "BOOT_FAIL",
    "CA": "CANCELLED",
    "CD": "COMPLETED",
    "CF": "CONFIGURING",
    "CG": "COMPLETING",
    "DL": "DEADLINE",
    "F": "FAILED",
    "NF": "NODE_FAIL",
    "OOM": "OUT_OF_MEMORY",
    "PD": "PENDING",
    "PR": "PREEMPTED",
    "R": "RUNNING",
    "RD": "RESV_DEL_HOLD",
    "RF": "REQUEUE_FED",
    "RH": "REQUEUE_HOLD",
    "RQ": "REQUEUED",
    "RS": "RESIZING",
    "RV": "REVOKED",
    "S": "SUSPENDED",
    "SE": "SPECIAL_EXIT",
    "SI": "SIGNALING",
    "SO": "STAGE_OUT",
    "ST": "STOPPED",
    "TO": "TIMEOUT",
}
"""squeue's short state codes (`%t`) and the long names (`%T`); squeue(1), "JOB STATE CODES"."""

STATES = frozenset(STATE_CODES.values())


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One running job.

    `id` is Slurm's own text: `17`, `6_2` for a task of an array, `9` for a heterogeneous job
    (its components `9+0`, `9+1`, … are one record, see `merge_components`). `hosts` are node
    names, each once. `start` is in Unix seconds, None if unknown. `traffic` is the word after
    `sar:` in the job's comment, None if there is none. `uid` is the owner's, None if unknown.
    `raw` are Slurm's plain numbers of the job (of each component), where the source tells them.
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
        """By which Slurm's hooks call it: a task of an array has a number of its own."""
        return self.raw or ((self.id,) if self.id.isdecimal() else ())

    @property
    def weight(self) -> float:
        """How much its terminals send compared with full speed: 0.2 for a hint `weight=0.2`.

        1.0 where nothing is said, or nothing that makes sense: a comment must not stop the agent.
        """
        found = _WEIGHT.fullmatch(self.traffic or "")
        weight = float(found[1]) if found else 1.0
        return weight if LEAST_WEIGHT <= weight <= MOST_WEIGHT else 1.0


LEAST_WEIGHT, MOST_WEIGHT = 0.001, 100.0
_WEIGHT = re.compile(r"weight=(\d+\.?\d*|\.\d+)")
_TRAFFIC = re.compile(r"(?:^|[\s;,])sar:([A-Za-z0-9_.:=+\-]+)")


def traffic_hint(*comments: str) -> str | None:
    """The word after `sar:` in the first of `comments` that has one: `x sar:ring` → `ring`."""
    for comment in comments:
        match = _TRAFFIC.search(comment)
        if match:
            return match.group(1)
    return None


def merge_components(records: Iterable[JobRecord]) -> tuple[JobRecord, ...]:
    """`records` with the components `9+0`, `9+1`, … of a heterogeneous job made one record, `9`.

    They are started together and normally by one `srun` with one MPI_COMM_WORLD, so their nodes
    talk to each other; taken apart, a job of two components on one switch each would look like
    two single-switch jobs. The first component gives state, user and partition.
    """
    merged: dict[str, JobRecord] = {}
    for record in records:
        leader = record.id.partition("+")[0]
        known = merged.get(leader)
        if known is None:
            merged[leader] = replace(record, id=leader) if leader != record.id else record
        else:
            merged[leader] = replace(
                known,
                hosts=tuple(dict.fromkeys(known.hosts + record.hosts)),
                start=record.start if known.start is None else known.start,
                traffic=known.traffic or record.traffic,
                raw=known.raw + record.raw,
            )
    return tuple(merged.values())
