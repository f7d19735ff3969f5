"""What the network is: `Fabric`, the readers and generators that make one, and its writers."""

from sar_agent.fabric.model import Fabric, Kind

__all__ = ["Fabric", "Kind"]
