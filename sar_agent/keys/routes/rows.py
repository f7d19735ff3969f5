"""What of a key goes into the switches: whole rows of its destinations.

Where the key's flows pass, the rows are theirs; every other switch gets a way to the same hosts,
too, since everybody may send to a LID: D-mod-k's, or Up*/Down*'s where the tree is no XGFT. All of
it goes up, then down, and whoever meets a flow's way goes on with it.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8
from sar_agent.keys.routes.key import RoutingKey
from sar_agent.keys.routes.shift import Shift
from sar_agent.keys.routes.tree import KeyTree
from sar_agent.routing.lid_offsets import KeyRows
from sar_agent.routing.oblivious import modulo_labels
from sar_agent.routing.oblivious_tables import fill_digits
from sar_agent.routing.routes import NO_ROUTE
from sar_agent.routing.updn import legal_rows


def rows_of(key: RoutingKey, shift: Shift, fabric: Fabric) -> KeyRows:
    """The rows of the hosts that the key's flows end at, ascending; `fabric` is the key's."""
    own = own_rows(key, shift)
    others = own.egress == NO_ROUTE
    own.egress[others] = _elsewhere(key.tree, own.destinations)[others]
    return own


def own_rows(key: RoutingKey, shift: Shift) -> KeyRows:
    """Only what the flows pass, 255 at other switches: `stack` puts the shelter there. It goes up,
    then down, too, so any mixture of the two arrives, and an install sends the less."""
    fabric = key.tree.fabric
    destinations = np.unique(key.destination).astype(np.int32)
    rows = np.full((len(destinations), fabric.switches), NO_ROUTE, np.uint8)
    place = np.searchsorted(destinations, key.destination)
    flow, hop = np.nonzero(shift.channels >= 0)
    channel = shift.channels[flow, hop]
    rows[place[flow], fabric.channel_source[channel]] = fabric.channel_port[channel]
    return KeyRows(destinations, rows)


def _elsewhere(tree: KeyTree, destinations: I32) -> U8:
    """uint8[D, S]: for switches that no flow passes."""
    fabric, view = tree.fabric, tree.view
    if view is not None:
        return fill_digits(fabric, view, destinations, modulo_labels(view)[destinations])
    together = np.argsort(fabric.terminal_switch[destinations], kind="stable")
    rows = np.empty((len(destinations), fabric.switches), np.uint8)
    rows[together] = legal_rows(fabric, *tree.legal, destinations[together].astype(np.uint32))
    return rows
