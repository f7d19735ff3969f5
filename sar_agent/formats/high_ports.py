"""Tables without the ports above 127 that are in use.

`dump_fts` before rdma-core 63 keeps ports in a signed char, takes those above 127 for invalid, and
leaves them out without a word (linux-rdma/rdma-core pull request 1721). OpenSM's dump and `ibroute`
of rdma-core 36 and later have them.
"""

from __future__ import annotations

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.routing.routes import NO_ROUTE, Routes

MOST_SIGNED = 127
WHY = "dump_fts before rdma-core 63 leaves such ports out without a word"
REMEDY = "take OpenSM's opensm-lfts.dump (log_flags 0x40), a later dump_fts, or ibroute"


def require_high_ports(fabric: Fabric, routes: Routes, file: str) -> str | None:
    """Raise `InputError` where a switch has cables at ports above 127, and its table has no entry
    for any of them, but holes. A sentence where no host and no other switch is behind these ports,
    only a unit of the switch itself."""
    said = None
    for s in np.flatnonzero(fabric.switch_ports > MOST_SIGNED).tolist():
        behind, cables = _behind(fabric, s)
        entries = routes.egress[0, :, s]
        high = (entries > MOST_SIGNED) & (entries != NO_ROUTE)
        if high.any() or not len(behind) + cables or (entries[behind] != NO_ROUTE).any():
            continue
        holes = int(np.count_nonzero(entries == NO_ROUTE))
        if not holes:
            continue
        count = len(behind) + cables
        sentence = (
            f'the table of switch "{fabric.switch_name[s]}" has no port above {MOST_SIGNED}, where '
            f"it has {count} cable{'s' * (count != 1)}, and lacks {holes} "
            f"destination{'s' * (holes != 1)}: {WHY}"
        )
        if cables or fabric.is_host_port[behind].any():
            raise InputError(sentence, file=file, remedy=REMEDY)
        said = sentence
    return said


def _behind(fabric: Fabric, s: int) -> tuple[I32, int]:
    """int32[H]: the terminals at high ports of a switch; and how many of its live cables to
    switches are there."""
    at = (fabric.terminal_switch == s) & (fabric.terminal_switch_port > MOST_SIGNED)
    channels = slice(int(fabric.channel_offset[s]), int(fabric.channel_offset[s + 1]))
    high = (fabric.channel_port[channels] > MOST_SIGNED) & fabric.channel_up[channels]
    return np.flatnonzero(at & fabric.terminal_up).astype(np.int32), int(np.count_nonzero(high))
