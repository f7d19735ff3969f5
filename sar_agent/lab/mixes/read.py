"""`--history`: records of a site in any form we read, or made up."""

from __future__ import annotations

from sar_agent.lab.history import History, read_history
from sar_agent.lab.mixes.standins import is_synthetic, synthetic_history


def history_of(spec: str) -> History:
    """Raises `InputError`."""
    return synthetic_history(spec) if is_synthetic(spec) else read_history(spec)
