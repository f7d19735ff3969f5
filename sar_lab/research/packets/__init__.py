"""A packet simulator: segments, credits, virtual output queues."""

from sar_lab.research.packets.packet_model import (
    Choice,
    PacketModel,
    PacketRun,
    adaptive_times,
    packet_times,
)

__all__ = ["Choice", "PacketModel", "PacketRun", "adaptive_times", "packet_times"]
