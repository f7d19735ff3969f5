"""What the phases of all collectives send over the fabric, by the entries that lead it.

An *item* is a destination and a leaf switch with hosts that send to it: all of its messages take
the same path. Jobs, items and phases are in the order of GUIDs, so that the order of a fabric's
file changes nothing. Of a pairwise exchange `PHASES` phases are looked at. A host
that is in two jobs receives from both.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sar_agent.demand.collectives import AT_ONCE, COLLECTIVES, PAIRWISE, RING, moments
from sar_agent.demand.declared import declared_phases
from sar_agent.demand.patterns import RankPhase, rank_phases
from sar_agent.demand.rank_order import ranks_of
from sar_agent.demand.rates import port_demand
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, I32, I64, Bool
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import Job

MOST_ITEMS = 2_000_000
"""What all jobs send at once is looked at for jobs of together so many items, the smallest first:
one job on 11,664 hosts has 5.7 million."""
ALL = tuple(COLLECTIVES)


class PhaseDemand(NamedTuple):
    """I items, G phases of P collectives and J jobs; U uses of items in phases."""

    leaf: I32
    """int32[I]: a switch."""
    destination: I32
    """int32[I]: a terminal at another switch."""
    use: I64
    """int64[I + 1] into the uses of items, which are in the order of phases, …"""
    use_phase: I32
    """int32[U]"""
    use_amount: F64
    """float64[U]: what is sent, as a share of the rate of the fabric's fastest terminal."""
    sent: I64
    """int64[G + 1] into the uses by phase, …"""
    sent_item: I32
    """int32[U]"""
    sent_amount: F64
    """float64[U]"""
    to: I64
    """int64[T + 1] into `to_item`: the items by destination."""
    to_item: I32
    """int32[I]"""
    collective: I32
    """int32[G], ascending; within one, `job` int32[G] is."""
    job: I32
    share: F64
    """float64[G]: 1 / the phases of its job in its collective, times the job's weight: what other
    jobs meet of it."""
    mean: F64
    """float64[G]: 1 / the phases of its job in its collective."""
    begin: I64
    """int64[P, J + 1]: the phases of each collective and job are begin[p, j] … begin[p, j + 1]."""
    ring: Bool
    """bool[I]: whether a ring, or a phase that its job declares as its only one, sends here."""
    order: I64
    """int64[J]: the job's place in the mix."""

    @property
    def jobs(self) -> int:
        return len(self.order)


class _Sent(NamedTuple):
    """What the ranks of a job send in a collective."""

    source: I32
    destination: I32
    phase: I32
    weight: F64
    phases: int


def phase_demand(fabric: Fabric, mix: JobMix, collectives: Iterable[str] = ALL) -> PhaseDemand:
    """The demand of the jobs of `mix`, keys of `COLLECTIVES`."""
    names, order = tuple(collectives), jobs_by_guid(fabric, mix)
    ranks = ranks_of(fabric, mix).astype(np.int64)
    weight = np.array([job.weight for job in mix.jobs], np.float64)
    speed = port_demand(fabric, mix) / weight / float(fabric.terminal_rate.max())
    listed = _few_items(fabric, mix)
    leaf_of, goal = fabric.terminal_switch.astype(np.int64), fabric.terminals
    keys, phases, amounts, collective, job, count = [], [], [], [], [], []
    begin = np.zeros((len(names), len(order) + 1), np.int64)
    known = 0
    for p, name in enumerate(names):
        for k, j in enumerate(order.tolist()):
            begin[p, k] = known
            rank = ranks[mix.offset[j] : mix.offset[j + 1]]
            if name == AT_ONCE and declared_phases(mix.jobs[j]) is None:
                if listed[j]:
                    key, amount = _all_pairs(leaf_of, goal, rank)
                    keys.append(key)
                    amounts.append(amount * speed[j])
                    phases.append(np.full(len(key), known))
                number = 1
            else:
                sent = _sent(mix.jobs[j], name)
                number = sent.phases
                keys.append(leaf_of[rank[sent.source]] * goal + rank[sent.destination])
                amounts.append(sent.weight * speed[j])
                phases.append(known + sent.phase.astype(np.int64))
            collective += [p] * number
            job += [k] * number
            count += [number] * number
            known += number
        begin[p, -1] = known
    mean = 1.0 / np.array(count, np.float64)
    return _indexed(
        fabric,
        (_joined(keys, np.int64), _joined(phases, np.int64), _joined(amounts, np.float64)),
        (np.array(collective, np.int32), np.array(job, np.int32), mean),
        weight[order],
        begin,
        names.index(RING) if RING in names else -1,
        order,
    )


def jobs_by_guid(fabric: Fabric, mix: JobMix) -> I64:
    """int64[J]: the jobs in the order of their sizes, then of their GUIDs."""
    guids = [np.sort(fabric.terminal_guid[job.terminals]).tolist() for job in mix.jobs]
    extra = [(-job.weight, job.declared) for job in mix.jobs]
    placed = sorted(range(len(guids)), key=lambda j: (-len(guids[j]), guids[j], extra[j]))
    return np.array(placed, np.int64)


def _joined(parts: list[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype), *parts])


def _few_items(fabric: Fabric, mix: JobMix) -> Bool:
    """bool[J]: the jobs of which all pairs are looked at."""
    leaves = np.diff(mix.by_leaf(fabric)[0]).astype(np.int64)
    items = leaves * np.diff(mix.offset)
    few = np.zeros(len(items), np.bool_)
    smallest = np.argsort(items, kind="stable")
    few[smallest] = np.cumsum(items[smallest]) <= MOST_ITEMS
    # Of equal ones all or none, whatever their order.
    few &= ~np.isin(items, items[~few])
    return few


def _all_pairs(leaf_of: I64, terminals: int, rank: I64) -> tuple[I64, F64]:
    """(leaf · T + destination int64[·], how much is sent float64[·]) of an all-to-all."""
    leaf, at, here = np.unique(leaf_of[rank], return_inverse=True, return_counts=True)
    key = leaf[:, None] * terminals + rank[None, :]
    other = np.arange(len(leaf))[:, None] != at[None, :]
    amount = np.broadcast_to((here / (len(rank) - 1))[:, None], key.shape)
    return key[other], amount[other]


def _sent(job: Job, collective: str) -> _Sent:
    declared = declared_phases(job)
    if declared is None:
        return _usual(collective, len(job.terminals))
    return _as_sent(declared, collective == AT_ONCE)


@lru_cache(maxsize=1024)
def _usual(collective: str, size: int) -> _Sent:
    if collective != PAIRWISE:
        return _as_sent(rank_phases(collective, size), False)
    steps = np.unique((moments(size - 1) * (size - 1)).astype(int) + 1).tolist()
    return _as_sent([phase for k in steps for phase in rank_phases(f"shift:{k}", size)], False)


def _as_sent(phases: Iterable[RankPhase], together: bool) -> _Sent:
    some = [phase for phase in phases if len(phase.source)]
    none = np.empty(0, np.int32)
    sizes = [len(phase.source) for phase in some]
    number = np.repeat(np.arange(len(some), dtype=np.int32), sizes)
    weight = np.repeat([phase.weight for phase in some], sizes)
    if together and len(some):
        number, weight = np.zeros_like(number), weight / len(some)
    return _Sent(
        np.concatenate([none, *(phase.source for phase in some)]),
        np.concatenate([none, *(phase.destination for phase in some)]),
        number,
        weight.astype(np.float64),
        min(1, len(some)) if together else len(some),
    )


def _indexed(
    fabric: Fabric,
    uses: tuple[I64, I64, F64],
    phases: tuple[I32, I32, F64],
    weight: F64,
    begin: I64,
    ring: int,
    order: I64,
) -> PhaseDemand:
    """The items of uses (leaf · T + destination, phase, amount)."""
    collective, job, mean = phases
    key, phase, amount = uses
    goal, switches = fabric.terminals, fabric.switches
    leaf, destination = np.divmod(key, goal)
    cross = leaf != fabric.terminal_switch[destination]
    leaf, destination, phase, amount = leaf[cross], destination[cross], phase[cross], amount[cross]
    leaf_rank = np.argsort(np.argsort(fabric.switch_guid))
    rank = np.argsort(np.argsort(fabric.terminal_guid))
    named = leaf_rank[leaf] * goal + rank[destination]
    at = np.lexsort((phase, named))
    named, phase, amount = named[at], phase[at], amount[at]
    first = np.flatnonzero(np.diff(named, prepend=-1) | np.diff(phase, prepend=-1))
    amount = np.add.reduceat(amount, first) if len(first) else amount
    named, phase = named[first], phase[first]
    begins = np.flatnonzero(np.diff(named, prepend=-1))
    leaf_guid, guid = np.argsort(fabric.switch_guid), np.argsort(fabric.terminal_guid)
    items_leaf = leaf_guid[named[begins] // goal].astype(np.int32)
    items_destination = guid[named[begins] % goal].astype(np.int32)
    item = np.cumsum(np.diff(named, prepend=-1) != 0) - 1
    by_phase = np.argsort(phase, kind="stable")
    by_destination = np.argsort(items_destination, kind="stable")
    rings = np.zeros(len(begins), np.bool_)
    lone = (collective == ring) & (mean == 1.0)
    rings[item[lone[phase]]] = True
    assert len(begins) <= switches * goal
    return PhaseDemand(
        leaf=items_leaf,
        destination=items_destination,
        use=np.append(begins, len(named)).astype(np.int64),
        use_phase=phase.astype(np.int32),
        use_amount=amount,
        sent=np.searchsorted(phase[by_phase], np.arange(len(mean) + 1)).astype(np.int64),
        sent_item=item[by_phase].astype(np.int32),
        sent_amount=amount[by_phase],
        to=np.searchsorted(items_destination[by_destination], np.arange(goal + 1)).astype(np.int64),
        to_item=by_destination.astype(np.int32),
        collective=collective,
        job=job,
        share=mean * weight[job] if len(job) else mean,
        mean=mean,
        begin=begin,
        ring=rings,
        order=order,
    )
