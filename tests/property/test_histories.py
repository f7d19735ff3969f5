"""Dependencies and traffic over random histories: by the kernels, and packet by packet."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.check.proof import ProvedTables, prove
from sar_agent.check.walk import Planes
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.routing import Routes
from tests.examples import examples
from tests.property.histories import SHAPES, history
from tests.property.networks import networks

Shape = tuple[int, int]
Network = tuple[Fabric, JobMix]


@examples(30)
@given(network=networks(), random=st.randoms(use_true_random=False), of=SHAPES)
def test_dependencies_are_counted_exactly(network: Network, random: Random, of: Shape) -> None:
    for fabric, routes in history(network[0], random, 8, of):
        if proved := prove(fabric, routes):
            assert np.array_equal(proved.counts, followed(fabric, routes, proved))


def followed(fabric: Fabric, routes: Routes, proved: ProvedTables) -> Planes:
    """`ProvedTables.counts` by following every packet, from the fabric's cables alone."""
    counts, ports = np.zeros_like(proved.counts), int(proved.wiring.ports)
    up, lanes = fabric.switch_up, routes.virtual_lanes
    hosts = (fabric.terminals_at > 0) & up
    units = np.zeros_like(hosts)
    units[fabric.terminal_switch[fabric.terminal_up]] = True
    for o, d in np.ndindex(routes.egress.shape[:2]):
        switch = d - fabric.terminals
        if not (up[switch] if switch >= 0 else fabric.terminal_up[d]):
            continue
        to_host, seen = switch < 0 and bool(fabric.is_host_port[d]), set()
        for s in np.flatnonzero((hosts | units) & up):
            lane = 0 if lanes == 1 else int(routes.service_level[o, d, s]) % lanes
            plane = lane if to_host and hosts[s] else lanes + lane
            at, end = int(s), int(fabric.destination_switch[d])
            while at != end:
                port = int(routes.egress[o, d, at])
                then = int(fabric.channel_target[fabric.channel_by_port[at, port]])
                seen.add((plane, (at * ports + port) * ports + int(routes.egress[o, d, then])))
                at = then
        for place in seen:
            counts[place] += 1
    return counts


@examples(40)
@given(network=networks(), random=st.randoms(use_true_random=False), of=SHAPES)
def test_routes_are_counted_pair_by_pair(network: Network, random: Random, of: Shape) -> None:
    for fabric, routes in history(network[0], random, 8, of):
        mix = JobMix.of([job for job in network[1].jobs if random.random() < 0.8])
        assert traffic_of(fabric, mix, routes).efi.tolist() == counted(fabric, mix, routes)


def counted(fabric: Fabric, mix: JobMix, routes: Routes) -> list[int]:
    """Effective EFI pair by pair, as far as packets come in tables that may be broken."""
    found = [0] * fabric.channels
    for job in mix.jobs:
        for source in job.terminals:
            for destination in job.terminals:
                v, root = int(fabric.terminal_switch[source]), fabric.terminal_switch[destination]
                for _ in range(fabric.switches):
                    c = int(fabric.channel_by_port[v, routes.egress[0, destination, v]])
                    if v == root or c < 0:
                        break
                    found[c] += 1
                    v = int(fabric.channel_target[c])
    return found
