"""Times and tables of OpenSM and the agent after a failure."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sar_agent.agent.history import History, Row
from sar_agent.errors import Unavailable
from sar_agent.opensm.plugin_client import PluginClient, PluginStatus
from sar_lab.live.opensm import OpenSM

COMPUTES = ("building", "waiting")
QUIET = 10.0
"""Seconds without news after which a failure is over: OpenSM sweeps more than once, and packets of
the tables before live for 7.6 s; a failure in that time waits for them."""
_BUILDS = re.compile(r"building routing with '([^']+)'")


@dataclass
class Observed:
    """What `status`, OpenSM's log and the agent's history showed until everything was over."""

    began: float = 0.0  # seconds from the failure to OpenSM's routing
    computed: float = 0.0  # from there until the tables are computed, the longest
    served: float = 0.0  # from there until the switches have confirmed paths between all hosts
    confirmed: float = 0.0  # from there until they have confirmed the last step, too
    entries: int = 0
    blocks: int = 0
    steps: int = 0
    milliseconds: float = 0.0  # the longest repair
    engines: str = ""  # all that OpenSM asked for routes, and those that were in force
    followed: float = 0.0  # from the routing until the agent's history tells of it
    agent: str = ""  # what the agent did, and how many entries it changed


class FailureWatch:
    """Watches one OpenSM. `history` is the folder of the agent's history while it lives."""

    def __init__(self, manager: OpenSM, patience: float, interval: float) -> None:
        self.manager, self.patience, self.interval = manager, patience, interval
        self.bridge = PluginClient(manager.socket_path)
        self.history: Path | None = None

    def over(self, what: str, act: Callable[[], None]) -> Observed:
        """Let it happen and watch until it is over. Raises `Unavailable` after `patience`."""
        logged, decided = len(self.manager.log()), time.time()
        before, seen = self.bridge.status(), Observed()
        last, engines, building = before, {before.engine_in_force}, 0.0
        failed = time.perf_counter()
        act()
        self.manager.sweep()
        quiet = asked = time.perf_counter()
        while asked - quiet < QUIET:
            if asked - failed > self.patience:
                raise Unavailable(
                    f"{what}: not over after {self.patience:g} s; OpenSM is {last.state}, engine "
                    f"{last.engine_in_force} is in force, {last.unconfirmed_switches} switches "
                    "have not confirmed"
                )
            status, now = self.bridge.status(), time.perf_counter()
            engines.add(status.engine_in_force)
            if status.state in COMPUTES and last.state not in COMPUTES:
                building = now
                seen.began = seen.began or now - failed
            if last.state in COMPUTES and status.state not in COMPUTES:
                seen.computed = max(seen.computed, now - building)
            noticed = status.topology_changes > before.topology_changes
            if noticed and status.routings != last.routings and not status.unconfirmed_switches:
                seen.began = seen.began or asked - failed  # it was too quick to be seen building
            self._count(seen, status, last, noticed, now - failed - seen.began)
            rows = self._decisions(decided)
            if rows and not seen.followed:
                seen.followed = now - failed - seen.began
            waits = self.history is not None and not rows
            if waits or not (status.settled and noticed) or status.routings != last.routings:
                quiet = now
            last, asked = status, now
            time.sleep(self.interval)
        seen.blocks = last.lft_blocks_confirmed - before.lft_blocks_confirmed
        engines.update(_BUILDS.findall(self.manager.log()[logged:]))
        seen.engines = ", ".join(sorted(engines))
        did = [f"{row.result} {row.entries_changed or 0:,} ({row.reason})" for row in rows]
        if calls := last.repair_calls_answered - before.repair_calls_answered:
            did.insert(0, f"answered {calls} calls")
        seen.agent = "; ".join(did)
        return seen

    def _count(
        self,
        seen: Observed,
        status: PluginStatus,
        last: PluginStatus,
        noticed: bool,
        finished: float,
    ) -> None:
        repaired = status.amendments not in (0, last.amendments)
        if repaired:
            seen.steps += 1
            seen.entries += status.amended_entries
            seen.milliseconds = max(seen.milliseconds, status.repair_ms)
        if noticed and status.routings != last.routings and not status.unconfirmed_switches:
            if not (seen.served or status.repair_drops):
                seen.served = finished
            if repaired or not seen.confirmed:
                seen.confirmed = finished

    def _decisions(self, since: float) -> list[Row]:
        """What the agent has decided since; nothing where there is no agent."""
        return [] if self.history is None else History(self.history).after(since, 99)
