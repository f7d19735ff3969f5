"""The network: `Fabric`, its readers, generators and writers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sar_agent.fabric.hostnames import Kind

if TYPE_CHECKING:
    from sar_agent.fabric.model import Fabric

__all__ = ["FORMATS", "Fabric", "Kind"]
FORMATS = "sar_agent.fabric_formats"
"""The entry-point group of `fabric/spec.py`."""


def __getattr__(name: str) -> Any:
    """`Fabric`, when it is first used: what reads the configuration does not need numpy."""
    if name != "Fabric":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sar_agent.fabric.model import Fabric

    return Fabric
