"""Determines the switches at which a host that the plan does not know may boot and send: an HCA was
swapped, or a host is added to a leaf switch.

Packets to such a host take the path to its switch's own LID, and the port to the host as the last
hop. Where the check has proved that there is no credit loop even if everyone sends to all LIDs,
those of switches included, one more host at a switch with hosts adds no dependency. Elsewhere, and
where lanes are chosen hop by hop, which depends on the host's port, nothing is proved of it: such a
host makes the routes stale, and the agent is asked for new ones.
"""

from __future__ import annotations

from sar_agent.check.proof import ProvedTables
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import Bool
from sar_agent.routing.routes import Routes


def senders_proved(fabric: Fabric, routes: Routes, proved: ProvedTables) -> Bool:
    """bool[S]: switches at which a new host may send without risk of a credit loop; a subset of
    `routes.senders` if that is set. `proved` is the proof that the check left behind."""
    may = fabric.switch_up & (fabric.terminals_at > 0)
    if routes.senders is not None:
        may &= routes.senders
    if not proved.everyone or proved.wiring.by_hop:
        may[:] = False
    # The check requires no paths to ports that are down, and an unknown host may be at one.
    may[fabric.terminal_switch[~fabric.terminal_up]] = False
    return may
