"""`--history`: a file in any form we read, or a made-up one."""

from __future__ import annotations

from sar_agent.errors import InputError
from sar_agent.lab.history.model import History
from sar_agent.lab.mixes.standins import is_synthetic, synthetic_history


def read_history(spec: str) -> History:
    """Raises `InputError`."""
    if is_synthetic(spec):
        return synthetic_history(spec)
    raise InputError(f"{spec!r} is no history that is known")
