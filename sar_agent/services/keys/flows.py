"""From a job's traffic pattern to flows between ports. Ranks are counted along the job's hosts, in
Slurm's order.

A host with several rails sends on each of them to the same rail of the other host. Tasks of one
host share its ports, so pairs of ranks with the same pair of ports are one flow; traffic inside a
host is no flow.

The input is text of users, and it is processed in the agent's loop: hosts, ranks and flows are
counted before any of them is made.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from sar_agent.demand.patterns import Phase, rank_phases
from sar_agent.errors import InputError, TooMany, Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.jobs.record import JobRecord
from sar_agent.services.keys.tickets import TrafficWish
from sar_agent.util.hostlist import expand_few

MOST_RANKS = 1 << 20
MOST_RANKS_OF_A_HOST = 1024
"""More than the hardware threads of any host."""
MOST_FLOWS = 1 << 17
"""Bounds the time that one request takes in the agent's loop."""
_TASKS = re.compile(r"(\d{1,6})(?:\(x(\d{1,6})\))?")


def hosts_of(record: JobRecord, nodes: str | None) -> tuple[str, ...]:
    """The hosts of the ranks: the job's, or those of the host list `nodes`. Raises `InputError`
    where that is not a host list, or has hosts that are not the job's."""
    if nodes is None:
        return record.hosts
    hosts = expand_few(nodes, len(record.hosts))
    if foreign := set(hosts) - set(record.hosts):
        raise InputError(f"{min(foreign)} is no host of job {record.id}")
    return hosts


def rank_hosts(tasks: str | None, hosts: int) -> I32:
    """int32[R]: the host of each rank, with tasks distributed in blocks; `tasks` has the form of
    SLURM_TASKS_PER_NODE. Raises `InputError` where it has another, or is of more hosts."""
    if tasks is None:
        return np.arange(hosts, dtype=np.int32)
    counts: list[int] = []
    for part in tasks.split(","):
        match = _TASKS.fullmatch(part)
        if match is None:
            raise InputError(f"tasks {tasks[:60]!r} is not of the form 2(x3),1")
        counts += [int(match[1])] * min(int(match[2] or 1), hosts + 1 - len(counts))
    if len(counts) > hosts:
        raise TooMany(f"tasks {tasks[:60]!r} is of more hosts than the job's {hosts}")
    if max(counts, default=0) > MOST_RANKS_OF_A_HOST:
        raise TooMany(f"tasks {tasks[:60]!r} are more than {MOST_RANKS_OF_A_HOST} ranks of a host")
    if sum(counts) > MOST_RANKS:
        raise TooMany(f"tasks {tasks[:60]!r} are more than {MOST_RANKS} ranks")
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts)


def phases_of_wish(fabric: Fabric, hosts: Sequence[str], wish: TrafficWish) -> list[Phase]:
    """The flows of each phase as terminals: (source int32[N], target int32[N]), each pair once.

    Raises `InputError` for an unknown pattern, for one of more ranks than the job has, and for
    pairs that are not valid.
    """
    host_of = rank_hosts(wish.tasks, len(hosts))
    rails = _rails(fabric, hosts)
    phases = []
    for sources, targets in _rank_phases(wish, len(host_of)):
        a, b = host_of[sources], host_of[targets]
        both = np.concatenate(
            [np.stack([rail[a], rail[b]]) for rail in rails] or [np.zeros((2, 0), np.int32)], axis=1
        )
        both = np.unique(both[:, (both[0] != both[1]) & (both >= 0).all(axis=0)], axis=1)
        phases.append((both[0].astype(np.int32), both[1].astype(np.int32)))
    return phases


def _rails(fabric: Fabric, hosts: Sequence[str]) -> list[I32]:
    """For each rail int32[hosts]: the terminal of each host, -1 where it has none or it is down."""
    rails: dict[int, I32] = {}
    for index, host in enumerate(hosts):
        for terminal in fabric.job_ports.get(host, ()):
            if fabric.terminal_up[terminal]:
                rail = int(fabric.terminal_rail[terminal])
                rails.setdefault(rail, np.full(len(hosts), -1, np.int32))[index] = terminal
    return [rails[rail] for rail in sorted(rails)]


def _rank_phases(wish: TrafficWish, ranks: int) -> list[Phase]:
    if wish.pairs:
        return [_pairs(wish.pairs, ranks)]
    if not wish.traffic:
        raise InputError("the request has neither a pattern nor pairs of ranks for the key")
    most = _most_flows(wish.traffic, ranks)
    if wish.traffic == "alltoall" and most > MOST_FLOWS:
        raise Unserved(
            f"an all-to-all of {ranks} ranks is too much for a routing key; the engine's routes, "
            "at offset 0, are made for it"
        )
    if most > MOST_FLOWS:
        raise Unserved(f"more than {MOST_FLOWS} flows are too many for one routing key")
    return [(flows.source, flows.destination) for flows in rank_phases(wish.traffic, ranks)]


def _most_flows(traffic: str, ranks: int) -> int:
    """The most flows that the pattern can have, counted before it is made."""
    name, _, numbers = traffic.partition(":")
    if name.startswith("stencil"):
        sides = [int(side) for side in re.findall(r"\d{1,6}", numbers[:60])]
        return 2 * len(sides) * min(math.prod(sides), ranks)
    return ranks * {"alltoall": ranks - 1, "butterfly": ranks.bit_length()}.get(name, 1)


def _pairs(pairs: tuple[int, ...], ranks: int) -> Phase:
    if len(pairs) % 2:
        raise InputError("the last rank of pairs has no rank to send to")
    both = np.array(pairs, np.int32).reshape(-1, 2)
    if int(both.max()) >= ranks:
        raise InputError(f"rank {int(both.max())} is not in the job, which has 0 … {ranks - 1}")
    if len(same := both[both[:, 0] == both[:, 1]]):
        raise InputError(f"rank {same[0, 0]} sends to itself")
    return both[:, 0].copy(), both[:, 1].copy()
