"""Fabrics that differ only in cables between switches: what is known of the hosts of one holds for
the other."""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import Fabric

_ARRAYS = ("terminal_guid", "terminal_kind", "terminal_up", "terminal_switch", "switch_guid")


def same_hosts(before: Fabric, after: Fabric) -> bool:
    """Whether both have the same terminals, by index, at the same switches, live or not."""
    return before.terminal_host == after.terminal_host and all(
        np.array_equal(getattr(before, name), getattr(after, name)) for name in _ARRAYS
    )
