"""Small invented fabrics, and how to compare and print fabrics, for the readers' tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric.lids import assign_lids
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.rates import rate_name
from sar_agent.fabric.subnet_lst import read_subnet_lst, write_subnet_lst

SMALL = """#
# Topology file: generated on Mon Jan  1 00:00:00 2024
#
# Initiated from node 00000000000a0010 port 00000000000a0010

vendid=0x2c9
devid=0xd2f0
sysimgguid=0x5001
switchguid=0x5001(5001)
Switch\t36 "S-0000000000005001"\t\t# "MF0;leaf # 1:MQM8700/U1" enhanced port 0 lid 1 lmc 0
[1]\t"H-00000000000a0010"[1](a0010) \t\t# "n001 mlx5_10" lid 11 4xHDR
[2]\t"H-00000000000a0020"[1](a0020) \t\t# "n001 mlx5_2" lid 12 4xHDR
[3]\t"H-00000000000a0030"[1](a0031) \t\t# "MT4129 ConnectX7   Mellanox Technologies" lid 13 4xQDR
[30]\t"S-0000000000005002"[30]\t\t# "MF0;leaf2:MQM8700/U1" lid 2 4xHDR
[31]\t"S-0000000000005002"[31]\t\t# "MF0;leaf2:MQM8700/U1" lid 2 4xHDR
[36]\t"H-0000000000005008"[1](5008) \t\t# "Mellanox Technologies Aggregation Node" lid 14 4xHDR

vendid=0x2c9
devid=0xd2f0
sysimgguid=0x5002
switchguid=0x5002(5002)
Switch\t36 "S-0000000000005002"\t\t# "MF0;leaf2:MQM8700/U1" enhanced port 0 lid 2 lmc 0
[1]\t"H-00000000000a0030"[2](a0032) \t\t# "MT4129 ConnectX7   Mellanox Technologies" lid 15 4xQDR
[2]\t"R-00000000000a0040"[1](a0041) \t\t# "gateway" lid 16 4xFDR10
[30]\t"S-0000000000005001"[30]\t\t# "MF0;leaf # 1:MQM8700/U1" lid 1 4xHDR
[31]\t"S-0000000000005001"[31]\t\t# "MF0;leaf # 1:MQM8700/U1" lid 1 4xHDR

vendid=0x2c9
devid=0x101b
sysimgguid=0xa0010
caguid=0xa0010
Ca\t1 "H-00000000000a0010"\t\t# "n001 mlx5_10"
[1](a0010) \t"S-0000000000005001"[1]\t\t# lid 11 lmc 1 "MF0;leaf # 1:MQM8700/U1" lid 1 4xHDR

vendid=0x2c9
devid=0x101b
sysimgguid=0xa0020
caguid=0xa0020
Ca\t1 "H-00000000000a0020"\t\t# "n001 mlx5_2"
[1](a0020) \t"S-0000000000005001"[2]\t\t# lid 12 lmc 1 "MF0;leaf # 1:MQM8700/U1" lid 1 4xHDR

vendid=0x2c9
devid=0x101b
sysimgguid=0xa0030
caguid=0xa0030
Ca\t2 "H-00000000000a0030"\t\t# "MT4129 ConnectX7   Mellanox Technologies"
[1](a0031) \t"S-0000000000005001"[3]\t\t# lid 13 lmc 1 "MF0;leaf # 1:MQM8700/U1" lid 1 4xQDR
[2](a0032) \t"S-0000000000005002"[1]\t\t# lid 15 lmc 1 "MF0;leaf2:MQM8700/U1" lid 2 4xQDR

vendid=0x2c9
devid=0x101b
sysimgguid=0xa0040
rtguid=0xa0040
Rt\t2 "R-00000000000a0040"\t\t# "gateway"
[1](a0041) \t"S-0000000000005002"[2]\t\t# lid 16 lmc 0 "MF0;leaf2:MQM8700/U1" lid 2 4xFDR10

vendid=0x2c9
devid=0xcf09
sysimgguid=0x5008
caguid=0x5008
Ca\t1 "H-0000000000005008"\t\t# "Mellanox Technologies Aggregation Node"
[1](5008) \t"S-0000000000005001"[36]\t\t# lid 14 lmc 1 "MF0;leaf # 1:MQM8700/U1" lid 1 4xHDR
"""
"""Two leaves with two cables between them, a two-rail host, one host without a name, a router."""
LANES = "terminal_lanes", "channel_lanes"


def differences(a: Fabric, b: Fabric) -> list[str]:
    """Names of the fields in which two fabrics differ, but for name and notes. Lanes that only one
    of them knows are no difference."""
    found = []
    for field in dataclasses.fields(Fabric):
        one, other = getattr(a, field.name), getattr(b, field.name)
        if field.name in LANES:
            known = (one != 0) & (other != 0)
            one, other = one[known], other[known]
        if field.name not in ("name", "notes") and not np.array_equal(one, other):
            found.append(field.name)
    return found


def ibnetdiscover_text(fabric: Fabric) -> str:
    """What ibnetdiscover would print of a fabric of one-port HCAs with all links up."""
    return "\n".join(_lines(fabric)) + "\n"


def _lines(f: Fabric) -> Iterator[str]:
    yield "#\n# Topology file: generated on Mon Jan  1 00:00:00 2024\n#"
    node = [f"H-{int(guid):016x}" for guid in f.terminal_node_guid]
    switch = [f"S-{int(guid):016x}" for guid in f.switch_guid]
    for s, name in enumerate(f.switch_name):
        yield f"\nvendid=0x2c9\ndevid=0x1\nswitchguid=0x{int(f.switch_guid[s]):x}(0)"
        yield (
            f'Switch\t{f.switch_ports[s]} "{switch[s]}"\t\t# "{name}" '
            f"enhanced port 0 lid {f.switch_lid[s]} lmc 0"
        )
        for t in np.flatnonzero(f.terminal_switch == s):
            yield (
                f'[{f.terminal_switch_port[t]}]\t"{node[t]}"[{f.terminal_port_number[t]}]'
                f'({int(f.terminal_guid[t]):x}) \t\t# "{f.terminal_description[t]}" '
                f"lid {f.terminal_lid[t]} {rate_name(float(f.terminal_rate[t]))}"
            )
        for c in range(f.channel_offset[s], f.channel_offset[s + 1]):
            far = f.channel_target[c]
            yield (
                f'[{f.channel_port[c]}]\t"{switch[far]}"[{f.channel_port[f.channel_reverse[c]]}]'
                f'\t\t# "{f.switch_name[far]}" lid {f.switch_lid[far]} '
                f"{rate_name(float(f.channel_rate[c]))}"
            )
    for t, description in enumerate(f.terminal_description):
        s = f.terminal_switch[t]
        yield f"\nvendid=0x2c9\ndevid=0x1\ncaguid=0x{int(f.terminal_node_guid[t]):x}"
        yield f'Ca\t1 "{node[t]}"\t\t# "{description}"'
        yield (
            f'[{f.terminal_port_number[t]}]({int(f.terminal_guid[t]):x}) \t"{switch[s]}"'
            f"[{f.terminal_switch_port[t]}]\t\t# lid {f.terminal_lid[t]} lmc 0 "
            f'"{f.switch_name[s]}" lid {f.switch_lid[s]} {rate_name(float(f.terminal_rate[t]))}'
        )


def in_order_of_guids(fabric: Fabric) -> Fabric:
    """The same fabric whatever order its source told it in: switches and terminals by GUID."""
    return in_order(fabric, np.argsort(fabric.switch_guid), np.argsort(fabric.terminal_guid))


def in_order(fabric: Fabric, s: NDArray[np.intp], t: NDArray[np.intp]) -> Fabric:
    """The same fabric as a source would tell it that lists switches and terminals in the orders
    `s` and `t`."""
    f = fabric
    new = np.argsort(s).astype(np.int32)  # of an old index
    c = np.lexsort((f.channel_port, new[f.channel_source]))
    values: dict[str, object] = {
        "channel_offset": np.searchsorted(
            new[f.channel_source][c], np.arange(f.switches + 1)
        ).astype(np.int32),
        "channel_source": new[f.channel_source][c],
        "channel_target": new[f.channel_target][c],
        "channel_reverse": np.argsort(c).astype(np.int32)[f.channel_reverse][c],
        "terminal_switch": new[f.terminal_switch][t],
        "switch_position": np.arange(f.switches, dtype=np.int32),
        "terminal_position": np.arange(f.terminals, dtype=np.int32),
    }
    for field in dataclasses.fields(Fabric):
        old = getattr(f, field.name)
        order = {"s": s, "t": t, "c": c}.get(field.name.split("_")[0][0])
        if field.name not in values and "_" in field.name and field.name != "switches_down":
            assert order is not None
            values[field.name] = (
                tuple(old[i] for i in order) if isinstance(old, tuple) else old[order]
            )
    return dataclasses.replace(fabric, **values)  # type: ignore[arg-type]


HAND_WRITTEN = """# two switches, parallel cables
Switch\t8 "Switch1"
[1]\t"Hca1"[1]
[2]\t"H-2"
[3]\t"Switch2"[3]\tw=12 s=4
# the second of the pair
[5]\t"Switch2"[5]

Switch 8 "Switch2"
[3]\t"Switch1"[3]\tw=12 s=4
[5]\t"Switch1"[5]

Hca\t2 "Hca1"
[1]\t"Switch1"[1]

Hca 2 "H-2" # "n002 mlx5_0"
[1]\t"Switch1"[2]
"""


def without_dead(fabric: Fabric, folder: Path) -> Fabric:
    """The live part, as a dump shows it that was made after the failures."""
    write_subnet_lst(fabric, assign_lids(fabric), folder / "live.lst")
    lines = (folder / "live.lst").read_text().splitlines(keepends=True)
    return read_subnet_lst("".join(line for line in lines if "LOG=DWN" not in line))
