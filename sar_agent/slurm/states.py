"""Slurm's job states, and which of them count as running."""

from __future__ import annotations

RUNNING_STATES = frozenset(
    {"RUNNING", "CONFIGURING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING"}
)
"""The states that count as running unless the configuration says otherwise: the job holds its
nodes and may send.

A job in CONFIGURING has its nodes (they boot, or the prolog runs), so that its routes exist when it
starts. Jobs in SUSPENDED and STOPPED hold their nodes and may continue at any moment without
notice; under gang scheduling they alternate every half minute, and the routes must not follow.
COMPLETING is left out: its processes are gone or being killed, and squeue prints only the nodes
that are not yet released (seen on 22.05: n[1,3,5-8], n[1,3,5], n[3,5], n3), so that counting it
would turn the end of one job into several changes.
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

STATES = frozenset(STATE_CODES.values()) | {"EXPEDITING"}
"""All states that squeue prints; EXPEDITING, of Slurm 25.11, has no short code that we know."""

FLAGS_BY_PRECEDENCE = (
    "COMPLETING",
    "STAGE_OUT",
    "CONFIGURING",
    "EXPEDITING",
    "RESIZING",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "SPECIAL_EXIT",
    "STOPPED",
    "REVOKED",
    "RESV_DEL_HOLD",
    "SIGNALING",
)
"""The flags that squeue's text prints instead of the base state, the first that is set (Slurm's
`job_state_string`, 23.02 to 26.05). Other flags, such as POWER_UP_NODE, it never prints."""


def state_of_flags(states: list[str]) -> str:
    """The state that squeue's text would print for a list of a base state and flags, as the JSON
    of Slurm 23.11 and later has it. Raises `IndexError` for an empty list."""
    return next((flag for flag in FLAGS_BY_PRECEDENCE if flag in states[1:]), states[0])
