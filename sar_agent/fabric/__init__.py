"""The network: `Fabric`, its readers, generators and writers."""

from sar_agent.fabric.model import Fabric, Kind

__all__ = ["Fabric", "Kind"]
