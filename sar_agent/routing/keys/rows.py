"""The table rows of a key: whole rows for its destinations.

Switches that the key's flows pass have the flows' entries. Every other switch has an entry for the
same hosts, too, because any host may send to a LID: that of D-mod-k, or of Up*/Down* where the tree
is no XGFT. All these paths go up, then down, and a path that meets a flow's path follows it.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8
from sar_agent.routing.dmodk import fill_digits, modulo_labels
from sar_agent.routing.keys.key import RoutingKey
from sar_agent.routing.keys.key_tree import KeyTree
from sar_agent.routing.keys.shift import Shift
from sar_agent.routing.lid_offsets import KeyRows
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.routing.updn import legal_rows


def rows_of(key: RoutingKey, shift: Shift, fabric: Fabric) -> KeyRows:
    """The rows of the hosts at which the key's flows end, ascending; `fabric` is the key's."""
    own = own_rows(key, shift)
    others = own.egress == NO_ROUTE
    own.egress[others] = _elsewhere(key.tree, own.destinations)[others]
    return own


def own_rows(key: RoutingKey, shift: Shift) -> KeyRows:
    """Only the entries of switches that the flows pass, `NO_ROUTE` elsewhere, where `stack` puts
    the shelter's. These paths go up, then down, too, so any mixture of both arrives, and an install
    sends less."""
    fabric = key.tree.fabric
    destinations = np.unique(key.destination).astype(np.int32)
    rows = np.full((len(destinations), fabric.switches), NO_ROUTE, np.uint8)
    place = np.searchsorted(destinations, key.destination)
    flow, hop = np.nonzero(shift.channels >= 0)
    channel = shift.channels[flow, hop]
    rows[place[flow], fabric.channel_source[channel]] = fabric.channel_port[channel]
    return KeyRows(destinations, rows)


def _elsewhere(tree: KeyTree, destinations: I32) -> U8:
    """uint8[D, S]: the entries of switches that no flow passes."""
    fabric, view = tree.fabric, tree.view
    if view is not None:
        return fill_digits(fabric, view, destinations, modulo_labels(view)[destinations])
    together = np.argsort(fabric.terminal_switch[destinations], kind="stable")
    rows = np.empty((len(destinations), fabric.switches), np.uint8)
    rows[together] = legal_rows(fabric, *tree.legal, destinations[together].astype(np.uint32))
    return rows
