"""The checks that routes must pass before they are installed."""

from sar_agent.check.certificate import certificate_of, covers_units
from sar_agent.check.proof import ProvedTables
from sar_agent.check.registered import Check, Finding
from sar_agent.check.unknown_senders import senders_proved
from sar_agent.check.verdict import CheckResult, Verdict, check_and_prove, check_routes

__all__ = [
    "Check",
    "CheckResult",
    "Finding",
    "ProvedTables",
    "Verdict",
    "certificate_of",
    "check_and_prove",
    "check_routes",
    "covers_units",
    "senders_proved",
]
