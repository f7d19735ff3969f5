"""What of a key goes into the switches: whole rows of its destinations.

Where the key's flows pass, the rows are theirs; every other switch gets a way to the same hosts,
too, since everybody may send to a LID: D-mod-k's. All of it goes up, then down.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8
from sar_agent.routing.keys.key import Key
from sar_agent.routing.keys.shift import Shift
from sar_agent.routing.keys.tree import KeyTree
from sar_agent.routing.oblivious import modulo_labels
from sar_agent.routing.oblivious_tables import fill_digits
from sar_agent.routing.offsets import KeyRows


def rows_of(key: Key, shift: Shift, fabric: Fabric) -> KeyRows:
    """The rows of the hosts that the key's flows end at, ascending; `fabric` is the key's."""
    destinations = np.unique(key.destination).astype(np.int32)
    rows = _elsewhere(key.tree, destinations)
    place = np.searchsorted(destinations, key.destination)
    flow, hop = np.nonzero(shift.channels >= 0)
    channel = shift.channels[flow, hop]
    rows[place[flow], fabric.channel_source[channel]] = fabric.channel_port[channel]
    return KeyRows(destinations, rows)


def _elsewhere(tree: KeyTree, destinations: np.ndarray) -> U8:
    """uint8[D, S]: for switches that no flow passes."""
    assert tree.view is not None
    return fill_digits(tree.fabric, tree.view, destinations, modulo_labels(tree.view)[destinations])
