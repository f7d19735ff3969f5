"""Counters of all switch ports right before and after a run, by perfquery.

**Weak spot:** a program is started for each switch, four at a time: 20 to 50 ms each.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from sar_agent.counters import CounterWindow, align
from sar_agent.counters.counter_files import decode_counter_text
from sar_agent.counters.readings import PortTotals, difference
from sar_agent.errors import Unavailable
from sar_agent.fabric import Fabric
from sar_agent.util.programs import run_program

MOST = 1 << 20


class PortCounts:
    """Reads and subtracts; `command` is perfquery, with options of the site such as `-C mlx5_0`."""

    def __init__(self, command: Sequence[str], fabric: Fabric) -> None:
        self.command, self.fabric = tuple(command), fabric
        both = zip(fabric.switch_lid.tolist(), fabric.switch_ports.tolist(), strict=True)
        self.switches = [(lid, ports) for lid, ports in both if lid]

    def read(self) -> PortTotals:
        """Raises `SarError` where perfquery does not work, or the LIDs are not known."""
        if not self.switches:
            raise Unavailable("the LIDs of the switches are not known")
        with ThreadPoolExecutor(4) as pool:
            texts = list(pool.map(self._of_switch, self.switches))
        return decode_counter_text("\n".join(texts), "perfquery", time.time())

    def since(self, before: PortTotals) -> CounterWindow:
        """Raises `SarError`; `WindowLeftOut` where the counters are not to be trusted."""
        after = self.read()
        return align(self.fabric, difference(before, after, time.time()))

    def _of_switch(self, switch: tuple[int, int]) -> str:
        lid, ports = switch
        return run_program(
            [*self.command, "-x", str(lid), f"1-{ports}"],
            deadline=30,
            most=MOST,
            remedy="install infiniband-diags, or give --perfquery none",
        )
