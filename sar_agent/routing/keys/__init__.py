"""Routing keys: routes for one job's traffic, at LID offsets of their own (routing-keys-2017)."""

from sar_agent.routing.keys.key import Contention, Flows, Key, make_key
from sar_agent.routing.keys.rows import own_rows, rows_of
from sar_agent.routing.keys.shift import Shift, as_made, choose_shift, shift_in
from sar_agent.routing.keys.tree import KeyTree, key_tree

__all__ = [
    "Contention", "Flows", "Key", "KeyTree", "Shift", "as_made", "choose_shift", "key_tree",
    "make_key", "own_rows", "rows_of", "shift_in",
]  # fmt: skip
