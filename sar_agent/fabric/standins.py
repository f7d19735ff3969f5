"""Stand-ins for two machines of sar-2016, generated from published numbers; not real cabling.

`standin:taurus`: six islands of 270, 108, 180, 232, 612 and 612 hosts, each a full-bisection tree
of 36-port switches with 18 hosts a leaf, around a 216-port director (12 line and 6 spine chips,
three cables between each two). Every island has 36 cables to the director, spread evenly over its
own spines and the line chips: these are all of the 216 ports, and no switch has more than 36. There
are 196 switches; the paper has 210, some of which serve storage.

`standin:tsubame`: `xgft:3;18,18,5;1,18,18`, one of Tsubame2.5's two rails, with 1,408 hosts: 15 or
16 on each of the 90 leaf switches. Ports stay free where a real machine has storage and login
nodes.
"""

from __future__ import annotations

from itertools import accumulate

from sar_agent.errors import InputError
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.generate import host_adder, switch_guid
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.xgft import Xgft, add_switch_tree

ISLANDS = (270, 108, 180, 232, 612, 612)
"""Hosts of Taurus's islands."""
_SPINES = (9, 6, 6, 9, 18, 18)
"""Spines of each island, so that 18 cables per leaf and 36 to the director fit 36-port switches."""
_DOWN, _DIRECTOR_LINES, _DIRECTOR_SPINES = 18, 12, 6
TSUBAME = Xgft((18, 18, 5), (1, 18, 18))
TSUBAME_HOSTS = 1408


def standin_fabric(spec: str) -> Fabric:
    """The fabric of a spec. Raises `InputError` for a machine without a stand-in."""
    makers = {"standin:taurus": _taurus, "standin:tsubame": _tsubame}
    if spec not in makers:
        raise InputError(f"{spec!r} is not a stand-in", remedy=f"known are {', '.join(makers)}")
    return makers[spec](spec)


def _taurus(spec: str) -> Fabric:
    builder = FabricBuilder(spec)
    add_host = host_adder(builder, sum(ISLANDS))
    lines = [builder.add_switch(switch_guid(i, 4), f"D-line{i}", 36) for i in range(12)]
    spines = [builder.add_switch(switch_guid(i, 5), f"D-spine{i}", 36) for i in range(6)]
    for line in range(_DIRECTOR_LINES):
        for k in range(18):
            spine, turn = k % _DIRECTOR_SPINES, k // _DIRECTOR_SPINES
            builder.add_link(lines[line], 19 + k, spines[spine], 3 * line + turn + 1)
    used = [0] * _DIRECTOR_LINES
    for island, (hosts, before) in enumerate(
        zip(ISLANDS, accumulate(ISLANDS, initial=0), strict=False)
    ):
        leaves = -(-hosts // _DOWN)
        own = [
            builder.add_switch(switch_guid(100 * island + i, 1), f"I{island + 1}-leaf{i}", 36)
            for i in range(leaves)
        ]
        tops = [
            builder.add_switch(switch_guid(100 * island + i, 2), f"I{island + 1}-spine{i}", 36)
            for i in range(_SPINES[island])
        ]
        for host in range(hosts):
            leaf = own[host // _DOWN]
            add_host(before + host, [(leaf, host % _DOWN + 1)])
        cables = 18 // len(tops)
        for i, leaf in enumerate(own):
            for k in range(18):
                top, turn = k % len(tops), k // len(tops)
                builder.add_link(leaf, 19 + k, tops[top], cables * i + turn + 1)
        for k in range(36):
            top, line = k % len(tops), k % _DIRECTOR_LINES
            used[line] += 1
            builder.add_link(
                tops[top], cables * leaves + k // len(tops) + 1, lines[line], used[line]
            )
    return builder.build()


def _tsubame(spec: str) -> Fabric:
    builder = FabricBuilder(spec)
    first = add_switch_tree(builder, TSUBAME)
    add_host = host_adder(builder, TSUBAME_HOSTS)
    leaves = TSUBAME.nodes(1)
    ends = [TSUBAME_HOSTS * (leaf + 1) // leaves for leaf in range(leaves)]
    host = 0
    for leaf, end in enumerate(ends):
        for port in range(1, end - host + 1):
            add_host(host + port - 1, [(first[1] + leaf, port)])
        host = end
    return builder.build()
