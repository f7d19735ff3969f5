"""Whether a fabric is what a plan was made for, but for switches that died.

Then the plan in force still serves what is left. It is not replaced by one without these switches:
when they come back, nothing has to change.

No list of dead switches is kept: where a plan was made without one that comes back, OpenSM's plugin
asks the agent.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.formats.routes_file import RoutesFile


def lacks_switches(fabric: Fabric, file: RoutesFile) -> bool:
    """Whether `fabric` is that of `file` with some switches missing or down: all other switches,
    cables and terminals are where the file has them, each at its port."""
    row = np.searchsorted(file.switch_guids, fabric.switch_guid)
    row = np.minimum(row, len(file.switch_guids) - 1)
    known = file.switch_guids[row] == fabric.switch_guid
    up = fabric.switch_up
    if not known[up].all() or np.count_nonzero(up) == len(file.switch_guids):
        return False
    return _cables_are_planned(fabric, file, row) and _terminals_are_planned(fabric, file, row)


def _cables_are_planned(fabric: Fabric, file: RoutesFile, row: np.ndarray) -> bool:
    live = np.flatnonzero(fabric.channel_up)
    ports = fabric.channel_port[live]
    if (ports >= file.far_ends.shape[1]).any():
        return False
    far = row[fabric.channel_target[live]] * 256 + fabric.channel_port[fabric.channel_reverse[live]]
    return bool((file.far_ends[row[fabric.channel_source[live]], ports] == far).all())


def _terminals_are_planned(fabric: Fabric, file: RoutesFile, row: np.ndarray) -> bool:
    live = np.flatnonzero(fabric.terminal_up)
    guids = fabric.terminal_guid[live]
    column = np.minimum(np.searchsorted(file.terminal_guids, guids), len(file.terminal_guids) - 1)
    leaf = row[fabric.terminal_switch[live]]
    return bool(
        (file.terminal_guids[column] == guids).all()
        and (file.terminal_leaf[column] == leaf).all()
        and (file.forwarding[0, leaf, column] == fabric.terminal_switch_port[live]).all()
    )
