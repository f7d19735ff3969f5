"""Lanes chosen hop by hop, for hosts that ignore the service level they are told.

SL2VL tables can choose a packet's lane by the port it came by and the port it leaves by, alike for
all 16 service levels. A packet's lane on a channel then depends on the channel before and on
nothing earlier. Such lanes exist, whatever their number, exactly for tables in which

    the *pairs* of channels, joined where a packet takes two pairs one after the other (three
    channels in a row), close no cycle.

Each pair has one lane, so a cycle of pairs is a cycle of (channel, lane), whatever the lanes; and
without such a cycle, a lane of its own for each pair that ends in a channel would do. So:

- Dragonflies: local, global, local has two pairs, and no third follows: two lanes, the second after
  a global cable. (Shortest paths over two global cables spoil that.)
- Rings of up to five switches, and tori of such rings routed dimension by dimension: shortest paths
  have at most two channels of a ring: two lanes.
- Rings of six: only the opposite switch is three channels away, and both ways reach it. Lanes exist
  if ties are broken both ways, so that neither way has three channels in a row all the way round.
- Rings of seven and more have no such lanes: any three channels in a row are on an only shortest
  path (`tests/property/test_hop_lanes.py` tries every lane of every pair).

Few lanes are found pair by pair, in the order in which packets can pass them: each pair takes the
lowest lane in which it closes no cycle with those before (`pair_lanes.py`). The check proves the
result, as that of every engine.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8
from sar_agent.routing.graph.csr import ChannelGraph, channel_graph_of
from sar_agent.routing.lanes.channel_pairs import triples_of
from sar_agent.routing.lanes.hop_tables import other_tables
from sar_agent.routing.lanes.pair_lanes import place_pairs
from sar_agent.routing.lanes.place_paths import UNPLACED
from sar_agent.routing.routes import Routes


def hop_lanes(
    fabric: Fabric, routes: Routes, max_lanes: int = 8, other_paths: bool = False
) -> Routes | None:
    """`routes` with at most `max_lanes` lanes chosen hop by hop, or with one lane where that is
    enough; None where no such lanes exist or were found.

    Lanes for all paths are tried first, then lanes for paths between hosts alone. With
    `other_paths`, where the tables allow no such lanes, some entries become other shortest paths
    and the engine's name gets the ending `+hop`.
    """
    net = channel_graph_of(fabric)
    laid = _lanes_for(fabric, net, routes, max_lanes)
    if laid is None and other_paths:
        tables = other_tables(fabric, routes.egress)
        if tables is not None:
            other = replace(routes, egress=tables, engine=f"{routes.engine}+hop")
            laid = _lanes_for(fabric, net, other, max_lanes)
    return laid


def _lanes_for(fabric: Fabric, net: ChannelGraph, routes: Routes, max_lanes: int) -> Routes | None:
    for everyone in (True, False):
        lane = place_pairs(fabric, net, triples_of(fabric, net, routes, everyone), max_lanes)
        if lane is not None:
            lanes = 1 + int(lane[lane != UNPLACED].max(initial=0))
            table = None if lanes == 1 else _tables(fabric, lane)
            return replace(routes, service_level=None, virtual_lanes=lanes, hop_lane=table, mark=0)
    return None


def _tables(fabric: Fabric, lane: U8) -> U8:
    """`Routes.hop_lane` from the lanes of pairs; 0 for pairs that no packet takes, and for packets
    that leave to a host or start at the switch."""
    ports = int(fabric.switch_ports.max(initial=0)) + 1
    table = np.zeros((fabric.switches, ports, ports), np.uint8)
    channel, port = np.nonzero(lane.reshape(-1, ports) != UNPLACED)
    entry = fabric.channel_port[fabric.channel_reverse[channel]]
    table[fabric.channel_target[channel], entry, port] = lane.reshape(-1, ports)[channel, port]
    return table
