"""The host of each rank: hosts in a given order, a first group, and the others at random."""

from __future__ import annotations

import numpy as np

from sar_agent.errors import CheckFailed, InputError
from sar_agent.fabric.model import I32, U32
from sar_lab.research.orcs.level_schedule import Schedule
from sar_lab.research.orcs.network import NONE, Network

Blocks = list[tuple[U32, bool]]
"""The hosts of the next ranks, and whether their order is fixed; else it is drawn for each run."""


def blocks_of(network: Network, schedule: Schedule, order: I32 | None, group: I32 | None) -> Blocks:
    """`order` and `group` as in `simulate`. Raises `InputError`."""
    first = np.empty(0, np.int64) if order is None else np.asarray(order, np.int64)
    blocks, taken = [(first, True)], first
    if group is not None:
        if len(group) != schedule.first or schedule.first == schedule.ranks:
            raise InputError(
                f"a first group of {len(group)} hosts for {schedule.first} ranks",
                remedy=f"-z {len(group)}",
            )
        if len(outside := np.setdiff1d(first, group)):
            raise InputError(f"{network.name[outside[0]]} is ordered, but not in the first group")
        blocks.append((np.setdiff1d(group, first), False))
        taken = np.asarray(group, np.int64)
    blocks.append((np.setdiff1d(np.arange(len(network.guid)), taken), False))
    return [(hosts.astype(np.uint32), fixed or len(hosts) < 2) for hosts, fixed in blocks]


def draw(blocks: Blocks, ranks: int, runs: int, random: np.random.Generator) -> U32:
    """uint32[runs, ranks]: the host of each rank in each run."""
    parts = []
    for hosts, fixed in blocks:
        part = np.tile(hosts, (runs, 1))
        parts.append(part if fixed else random.permuted(part, axis=1))
    return np.ascontiguousarray(np.concatenate(parts, axis=1)[:, :ranks])


def set_aside(network: Network, schedule: Schedule, blocks: Blocks) -> tuple[Schedule, U32] | None:
    """Where the second group has the same hosts in all runs and sends the same in each level: the
    schedule of the first group alone, and the load of the second on each link (uint32[E]). Else
    None."""
    ends = np.cumsum([len(hosts) for hosts, _ in blocks])
    split = schedule.first <= ends[0] or schedule.first in ends
    sends = schedule.background and len(schedule.level) > 1
    if not (sends and split and ends[-1] == schedule.ranks):
        return None
    # Only the first pattern can have drawn receivers, in its one level, where its pairs come first:
    # `drawn` stays as it is.
    own = schedule.destination < schedule.first
    before = np.concatenate([[0], np.cumsum(own)])[schedule.level]
    alone = schedule._replace(
        source=schedule.source[own],
        destination=schedule.destination[own],
        level=np.unique(before).astype(np.uint32),
    )
    last = slice(schedule.level[-2], schedule.level[-1])
    other = ~own[last]
    hosts = np.concatenate([hosts for hosts, _ in blocks])
    source = hosts[schedule.source[last][other]]
    return alone, load_of(network, source, hosts[schedule.destination[last][other]])


def load_of(network: Network, source: U32, destination: U32) -> U32:
    """uint32[E]: how many of these messages (sending and receiving hosts) cross each link."""
    load = np.zeros(len(network.head), np.uint32)
    link = network.enter[source]
    at = network.place[source]
    for _ in range(len(network.hop) + 2):
        away = at != network.place[destination]
        if not away.any():
            return load
        source, destination, at, link = (each[away] for each in (source, destination, at, link))
        inside = at < len(network.hop)
        link[inside] = network.hop[at[inside], destination[inside]]
        if (link == NONE).any():
            break
        load += np.bincount(link, minlength=len(load)).astype(np.uint32)
        at, link = network.head[link], np.full_like(link, NONE)
    raise no_route(network, int(source[0]), int(destination[0]))


def no_route(network: Network, source: int, destination: int) -> CheckFailed:
    """The error that names a pair without a route."""
    return CheckFailed(f"no route from {network.name[source]} to {network.name[destination]}")
