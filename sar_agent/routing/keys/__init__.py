"""Routing keys: routes for the traffic of one job, at LID offsets of their own
(routing-keys-2017)."""

from sar_agent.routing.keys.key import Flows, PhaseContention, RoutingKey, make_key
from sar_agent.routing.keys.key_tree import KeyTree, key_tree
from sar_agent.routing.keys.rows import own_rows, rows_of
from sar_agent.routing.keys.shift import Shift, choose_shift, shift_in, unshifted

__all__ = [
    "Flows",
    "KeyTree",
    "PhaseContention",
    "RoutingKey",
    "Shift",
    "choose_shift",
    "key_tree",
    "make_key",
    "own_rows",
    "rows_of",
    "shift_in",
    "unshifted",
]  # fmt: skip
