"""A job's routing keys in words: their flows, their switches, and other keys on their links."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.routing.routes import Routes
from sar_agent.services.keys.flows import phases_of_wish
from sar_agent.services.keys.leases import Lease
from sar_agent.services.keys.make_key import from_routes
from sar_agent.util.plural import plural


@dataclass(frozen=True)
class KeyDescription:
    """A lease, and its key in the tables in force; counts are 0 where the key is lost."""

    phase: str
    offset: int
    traffic: str
    phases: int
    """Phases of the pattern: flows of one phase run at the same time."""
    flows: int
    """Flows between leaf switches, of all phases."""
    switches: list[str]
    """Switches above the leaves that the flows pass."""
    own: int
    """Most flows of a phase over one link, counted in the tables in force."""
    total: int
    """The same with flows of other keys, when the key was made."""
    seconds_left: float | None
    """Seconds until the lease ends; None: it ends with the job."""
    lost: str

    def words(self) -> str:
        """For people: a sentence."""
        head = f"key for phase {self.phase} at LID offset {self.offset} ({self.traffic})"
        if self.lost:
            return f"{head}: lost, {self.lost}; its traffic takes the shelter's tables"
        until = (
            "the job ends" if self.seconds_left is None else f"{self.seconds_left:.0f} s are over"
        )
        shown = " ".join(f'"{name}"' for name in self.switches[:8])
        more = f" and {len(self.switches) - 8} more" if len(self.switches) > 8 else ""
        these = plural(len(self.switches), "switch", "switches")
        over = f" over {these} above the leaves ({shown}{more})"
        over *= bool(self.switches)
        return (
            f"{head}: {plural(self.flows, 'flow')} in {plural(self.phases, 'phase')}{over}; "
            f"at most {self.own} of a phase on a link, {self.total} with other keys'; "
            f"leased until {until}"
        )


def keys_of(
    fabric: Fabric, routes: Routes | None, leases: Iterable[Lease], jobs: Iterable[str]
) -> list[KeyDescription]:
    """The keys of the jobs with these numbers, as they are in `routes`, which are in force."""
    numbers, now = set(jobs), time.time()
    return [_describe(fabric, routes, lease, now) for lease in leases if lease.job in numbers]


def _describe(fabric: Fabric, routes: Routes | None, lease: Lease, now: float) -> KeyDescription:
    lost, count, own = lease.lost, (0, 0), 0
    switches: list[str] = []
    if routes is None or lease.offset >= len(routes.egress):
        lost = lost or "the routes in force are not known or have no such LID offset"
    if routes is not None and not lost:
        try:
            phases = phases_of_wish(fabric, lease.hosts, lease.wish)
            made = from_routes(fabric, lease, routes)
        except SarError as error:
            lost = str(error)
        else:
            leaf = fabric.terminal_switch
            count = len(phases), sum(int((leaf[a] != leaf[b]).sum()) for a, b in phases)
            passed = np.unique(fabric.channel_target[made.use > 0])
            switches = [
                fabric.switch_name[s] for s in passed.tolist() if not fabric.terminals_at[s]
            ]
            own = made.own
    return KeyDescription(
        phase=lease.phase,
        offset=lease.offset,
        traffic=lease.traffic or f"{plural(len(lease.pairs) // 2, 'pair')} of ranks",
        phases=count[0],
        flows=count[1],
        switches=switches,
        own=own,
        total=lease.total,
        seconds_left=lease.left(now),
        lost=lost,
    )
