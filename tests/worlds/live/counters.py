"""OpenSM with its PerfMgr, and counters that ibsim counts."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

import numpy as np

from sar_agent.counters.plugin_file import read_counters_file
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64
from sar_lab.live.process import wait_until
from tests.worlds.live.loop import LoopSite

PERFMGR = {"perfmgr": "TRUE", "perfmgr_sweep_time_s": "2", "perfmgr_redir": "FALSE"}


class Counters:
    """ibsim's counters of 64 bits; they only grow."""

    def __init__(self, site: LoopSite, fabric: Fabric) -> None:
        self.site, self.fabric = site, fabric
        self.counts: dict[str, int] = {}

    def count(self, share: F64, ports: Mapping[str, float], waits: int = -1) -> None:
        """Once PerfMgr has swept again: one window in which each channel carries `share` of its
        speed, and each host in `ports` sends that share of its own; packets wait at channel
        `waits`. OpenSM is stopped meanwhile, so that no sweep sees half of it."""
        before = self.site.bridge.status().perfmgr_sweep
        assert wait_until(lambda: self.site.bridge.status().perfmgr_sweep > before, 30, 0.02)
        assert wait_until(self._sweep_is_over, 30, 0.02)
        fabric, commands = self.fabric, []
        for c in np.flatnonzero(share):
            near, far = fabric.channel_source[c], fabric.channel_target[c]
            words = int(share[c] * fabric.channel_rate[c] * 1e9 / 8 * 2 / 4)
            back = fabric.channel_port[fabric.channel_reverse[c]]
            port = f'"{fabric.switch_name[near]}"[{fabric.channel_port[c]}]'
            received = f'"{fabric.switch_name[far]}"[{back}] PortCountersExtended.PortRcvData'
            commands.append(self._add(f"{port} PortCountersExtended.PortXmitData", words))
            commands.append(self._add(received, words))
            if c == waits:
                commands.append(self._add(f"{port} PortCounters.PortXmitWait", 1000))
        for host, part in ports.items():
            (t,) = fabric.hosts[host]
            words = int(part * fabric.terminal_rate[t] * 1e9 / 8 * 2 / 4)
            commands.append(self._add(f'"{host}"[1] PortCountersExtended.PortXmitData', words))
        os.kill(self.site.sm.pid, signal.SIGSTOP)
        try:
            self.site.fabric.run_commands(commands)
        finally:
            os.kill(self.site.sm.pid, signal.SIGCONT)

    def _sweep_is_over(self) -> bool:
        """Whether PerfMgr has read no port for a while, of the two seconds between its sweeps."""
        self.site.bridge.counters()
        readings = read_counters_file(self.site.sm.run_dir / "counters.sar")
        return bool(readings.counted.any() and readings.age.min() > 0.2)

    def _add(self, counter: str, count: int) -> str:
        self.counts[counter] = self.counts.get(counter, 0) + count
        return f"PerformanceSet {counter}={self.counts[counter]}"
