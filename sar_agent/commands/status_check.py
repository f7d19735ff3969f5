"""`sar-agent status --check`: the state as one line and an exit code, for monitoring plugins.

The codes are those of Nagios, Icinga and others: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sar_agent.agent.status import AgentStatus


class MonitoringCode(IntEnum):
    """What a monitoring plugin returns."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


def judge_status(status: AgentStatus) -> tuple[MonitoringCode, str]:
    """The code, and the reason in a sentence."""
    if status.unread:
        return MonitoringCode.CRITICAL, status.unread
    if not status.running:
        code = MonitoringCode.CRITICAL if status.mode == "install" else MonitoringCode.WARNING
        return code, f"the agent is not running ({status.mode} mode)"
    if status.dump_outdated:
        return MonitoringCode.WARNING, status.dump_outdated
    if status.stale:
        return MonitoringCode.WARNING, status.stale
    if status.mode != "install":
        return MonitoringCode.OK, f"the agent runs ({status.running}) and observes"
    return _judge_installed(status)


def _judge_installed(status: AgentStatus) -> tuple[MonitoringCode, str]:
    now, wanted = status.in_force, status.wanted
    if now is None:
        return MonitoringCode.CRITICAL, f"{status.manager} does not answer: {status.problem}"
    if wanted is None:
        return MonitoringCode.WARNING, "no routes were installed yet"
    if not now.ours:
        return MonitoringCode.WARNING, f"the routes in force are those of engine {now.engine}"
    if not now.settled:
        return MonitoringCode.WARNING, f"routes are not confirmed yet: {now.unsettled}"
    if now.drops:
        return MonitoringCode.WARNING, now.drops
    if now.identity != wanted.identity:
        return (
            MonitoringCode.WARNING,
            f"generation {now.generation} is in force, not {wanted.generation}",
        )
    held = ", held by a rollback" if wanted.held else ""
    return MonitoringCode.OK, f"generation {now.generation} is in force{held}"
