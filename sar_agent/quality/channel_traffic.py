"""The traffic of the jobs' routes on every channel: route counts (effective EFI) and loads.

There is one walk per (destination terminal of a job, leaf switch with sources that send to it),
weighted by the number of sources there, which all share the rest of the path. The walks yield whole
numbers: how many routes of a job each channel that it uses carries.

Effective EFI, dark fiber and what sar-2016 counts of a job take all pairs of a job, as there, so
that numbers of two sites mean the same. Loads take what is sent: of a job whose traffic is
declared, its pairs alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sar_agent.demand.collectives import AT_ONCE, PAIRWISE
from sar_agent.demand.rates import declared_flows, route_demand
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, U32
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import Job
from sar_agent.quality.collective_contention import collective_contention
from sar_agent.routing.demand_items import DemandItems, demand_items_of
from sar_agent.routing.graph.next_hops import NextHops, next_hops_of
from sar_agent.routing.routes import Routes
from sar_agent.util.kernels import kernel, kernel_part

I64 = NDArray[np.int64]


class ChannelLists(NamedTuple):
    """The channels that each job uses."""

    offset: I64
    """int64[J + 1]"""
    channel: U32
    """uint32[·]: job j uses channel[offset[j]:offset[j + 1]] (places at the end stay unused)."""
    routes: U32
    """uint32[·]: the number of the job's routes over each of these channels."""


@dataclass(frozen=True, eq=False)
class Traffic:
    """Traffic per channel and per job; C channels, J jobs in the order of the mix."""

    efi: I64
    """int64[C], effective edge forwarding index (sar-2016, Definition 7): ordered pairs of
    terminals of one job whose route uses the channel, summed over jobs."""
    load: NDArray[np.float64]
    """float64[C]: the sum of the routes that are sent over, each at its job's `route_demand`, as a
    share of what the channel can carry; 1.0 is a full link while every job sends all at once."""
    job_efi: I64
    """int64[J], the largest `efi` among the channels of the job's routes."""
    job_efi_own: I64
    """int64[J], gamma_max(j) (sar-2016, Section 4.2.1): the most routes of the job itself over a
    channel."""
    job_load: NDArray[np.float64]
    """float64[J], the largest `load` among the channels that it sends over."""
    job_links: I64
    """int64[J], the number of channels of the job's routes."""
    job_switches: I64
    """int64[J], the number of leaf switches of its terminals."""
    every: ChannelLists
    """Of all routes inside each job."""
    lists: ChannelLists
    """Of those that it sends over: the same object where no traffic is declared."""
    fabric: Fabric
    mix: JobMix
    routes: Routes

    def links_of(self, jobs: Iterable[int]) -> I64:
        """int64[·], ascending: the channels that these jobs or parts of jobs send over."""
        offset = self.lists.offset
        used = [self.lists.channel[offset[j] : offset[j + 1]] for j in jobs]
        return np.unique(np.concatenate([np.empty(0, np.uint32), *used])).astype(np.int64)

    def contention(self, collective: str) -> NDArray[np.float64]:
        """float64[J], what a key of `COLLECTIVES` costs each job, at least 1: computed when first
        asked for, since a pass that changes no routes does not need it."""
        known = self._contention.get(collective)
        if known is None:
            if collective == AT_ONCE:
                known = np.maximum(1.0, self.job_load)
            else:
                tables = self.routes.egress[0]
                known = collective_contention(self.fabric, self.mix, tables, collective)
            self._contention[collective] = known
        return known

    @cached_property
    def _contention(self) -> dict[str, NDArray[np.float64]]:
        return {}

    @property
    def phase_contention(self) -> NDArray[np.float64]:
        """float64[J], what one message at a time costs each job: that of a pairwise exchange."""
        return self.contention(PAIRWISE)


def traffic_of(fabric: Fabric, mix: JobMix, routes: Routes) -> Traffic:
    """The traffic of the routes of LID offset 0. Where tables lead nowhere or in a circle, a walk
    ends; the channels up to there count, as packets would cross them."""
    ways, tables = next_hops_of(fabric), routes.egress[0]
    every = lists = _list_routes(ways, _route_items(fabric, mix.jobs, sent=False), tables)
    if any(map(declared_flows, mix.jobs)):
        lists = _list_routes(ways, _route_items(fabric, mix.jobs, sent=True), tables)
    channel, here = _used(every)
    efi = np.bincount(channel, here, fabric.channels).astype(np.int64)
    job_efi, job_efi_own = (_most(every, each) for each in (efi[channel], here.astype(np.int64)))
    channel, here = _used(lists)
    sent = here * np.repeat(route_demand(fabric, mix), np.diff(lists.offset))
    load = np.bincount(channel, sent, fabric.channels) / fabric.channel_rate
    job_load = _most(lists, load[channel])
    links = np.diff(every.offset)
    switches = np.diff(mix.by_leaf(fabric)[0]).astype(np.int64)
    return Traffic(
        efi, load, job_efi, job_efi_own, job_load, links, switches, every, lists,
        fabric, mix, routes,
    )  # fmt: skip


def _used(lists: ChannelLists) -> tuple[U32, U32]:
    """The channels and routes of all jobs, without the places at the end."""
    return lists.channel[: lists.offset[-1]], lists.routes[: lists.offset[-1]]


Number = TypeVar("Number", np.int64, np.float64)


def _most(lists: ChannelLists, value: NDArray[Number]) -> NDArray[Number]:
    """[J]: the largest value on the channels of each job, 0 without any; `value` of each place."""
    found, some = np.zeros(len(lists.offset) - 1, value.dtype), np.diff(lists.offset) > 0
    if some.any():
        found[some] = np.maximum.reduceat(value, lists.offset[:-1][some])
    return found


@lru_cache(maxsize=4)
def _route_items(fabric: Fabric, jobs: tuple[Job, ...], sent: bool) -> DemandItems:
    """Kept for the next tables under these jobs, the same objects: a pass measures several."""
    return demand_items_of(fabric, JobMix(jobs), "routes", sent=sent)


def load_besides(traffic: Traffic, terminals: Collection[int]) -> NDArray[np.float64]:
    """float64[C]: the `load` of the jobs that have none of these terminals."""
    away = np.array(sorted(terminals), np.int32)
    others = [job for job in traffic.mix.jobs if not np.isin(job.whole.terminals, away).any()]
    return traffic_of(traffic.fabric, JobMix.of(others), traffic.routes).load


@kernel
def _list_routes(ways: NextHops, work: DemandItems, tables: U8) -> ChannelLists:  # pragma: no cover
    """The lists of all jobs."""
    channels, jobs, switches = len(ways.target), len(work.unit), tables.shape[1]
    offset = np.zeros(jobs + 1, np.int64)
    channel = np.empty(channels, np.uint32)
    routes = np.empty_like(channel)
    carried = np.zeros(channels, np.int64)
    end = 0
    for j in range(jobs):
        if end + channels > len(channel):
            channel, routes = _longer(channel), _longer(routes)
        for m in range(work.member[j], work.member[j + 1]):
            d = work.terminal[m]
            root, table = ways.root[d], tables[d]
            for i in range(work.first[m], work.past[m]):
                v, hops = work.leaf[i], 0
                while v != root and hops < switches:
                    hops += 1
                    c = ways.channel_by_port[v, table[v]]
                    if c >= channels:
                        break
                    if carried[c] == 0:
                        channel[end] = c
                        end += 1
                    carried[c] += work.item[i]
                    v = ways.target[c]
        for i in range(offset[j], end):
            routes[i] = carried[channel[i]]
            carried[channel[i]] = 0
        offset[j + 1] = end
    return ChannelLists(offset, channel, routes)


@kernel_part
def _longer(values: U32) -> U32:  # pragma: no cover
    longer = np.empty(2 * len(values), np.uint32)
    for i in range(len(values)):
        longer[i] = values[i]
    return longer
