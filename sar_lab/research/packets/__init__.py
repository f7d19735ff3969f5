"""A packet simulator: segments, credits, virtual output queues."""

from sar_lab.research.packets.packet_model import PacketModel, PacketRun, packet_times

__all__ = ["PacketModel", "PacketRun", "packet_times"]
