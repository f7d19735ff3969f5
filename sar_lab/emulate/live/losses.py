"""Packets that an emulated fabric lost, and what TCP of its hosts had to send again."""

from __future__ import annotations

from typing import NamedTuple

from sar_lab.emulate.namespaces import EmulatedFabric


class Losses(NamedTuple):
    """Since the network exists; `a - b` is what came between."""

    dropped: int
    """Packets that switches, hosts and their queues dropped."""
    sent_again: int
    """Segments that TCP of the hosts sent a second time."""
    in_vain: int
    """Of those, what the receiver had already (it said so, DSACK): packets came out of order, and
    none was lost."""

    def minus(self, before: Losses) -> Losses:
        """What was lost since `before`."""
        return Losses(*(now - then for now, then in zip(self, before, strict=True)))

    def __str__(self) -> str:
        again = f"TCP sent {self.sent_again:,} segments again"
        if self.sent_again:
            again += f", {self.in_vain:,} of them although they had arrived"
        return f"packets lost: {self.dropped:,}; {again}"


def losses_of(network: EmulatedFabric) -> Losses:
    """By the counters of all namespaces."""
    spaces = (*network.switches, *network.hosts)
    return Losses(
        sum(space.dropped() for space in spaces),
        sum(host.counters("snmp")["Tcp"]["RetransSegs"] for host in network.hosts),
        sum(host.counters("netstat")["TcpExt"]["TCPDSACKRecv"] for host in network.hosts),
    )
