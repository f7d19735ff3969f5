"""What reports call a cable, an end of it, and a switch."""

from __future__ import annotations

from sar_agent.fabric.model import Fabric


def cable_name(fabric: Fabric, c: int) -> str:
    """`"S1-0"[8] – "S2-2"[1]`."""
    return f"{channel_end(fabric, c)} – {channel_end(fabric, fabric.channel_reverse[c])}"


def channel_end(fabric: Fabric, c: int) -> str:
    """`"S1-0"[8]`: the port at the channel's source."""
    return f"{switch_words(fabric, fabric.channel_source[c])}[{fabric.channel_port[c]}]"


def host_cable_name(fabric: Fabric, terminal: int) -> str:
    """`"S1-0"[3] – "n004 mlx5_0"[1]`."""
    return " – ".join(host_cable_ends(fabric, terminal))


def host_cable_ends(fabric: Fabric, t: int) -> tuple[str, str]:
    """The ports of a host's cable: that of the switch, and its own."""
    switch = switch_words(fabric, int(fabric.terminal_switch[t]))
    return (
        f"{switch}[{fabric.terminal_switch_port[t]}]",
        f'"{fabric.terminal_description[t]}"[{fabric.terminal_port_number[t]}]',
    )


def switch_words(fabric: Fabric, s: int) -> str:
    """Its name, and its GUID where others are called so, too."""
    name = fabric.switch_name[s]
    guid = f" (0x{int(fabric.switch_guid[s]):016x})" if fabric.switch_name.count(name) > 1 else ""
    return f'"{name}"{guid}'
