"""What `check/walk.py` computes, one packet after another: to be read beside it."""

from __future__ import annotations

import numpy as np

from sar_agent.check.wiring import Wiring

Dependency = tuple[int, int, int, int]
"""(plane, switch, port, port of the next switch)."""


def walk_plainly(wiring: Wiring, rows: tuple[np.ndarray, ...], d: int) -> set[Dependency] | None:
    """The dependencies of all packets to destination `d` where each switch forwards by the entry of
    any of the tables `rows`, each uint8[D, S]; None where a packet can come back to a switch. One
    lane, or lanes hop by hop: service levels have no part in it."""
    following, ports, lanes = wiring.following, int(wiring.ports), int(wiring.lanes)
    kind = int(wiring.destination_kind[d]) - 1
    entries = [{int(row[d, s]) for row in rows} for s in range(wiring.switches)]

    def ways(switch: int) -> set[int]:
        return {int(following[switch, min(port, ports)]) for port in entries[switch]}

    def circles(path: tuple[int, ...]) -> bool:
        ahead = {w for w in ways(path[-1]) if w < wiring.switches}
        return bool(ahead & set(path)) or any(circles((*path, w)) for w in ahead)

    if any(circles((s,)) for s in np.flatnonzero(wiring.sends[kind])):
        return None
    found = set[Dependency]()
    packets = set[tuple[int, int, int]]()
    """Where packets may hold a channel: (switch, its port, plane)."""
    for s in range(wiring.switches):
        for port in entries[s]:
            begin = wiring.sends[kind, s]
            if wiring.by_hop:
                begin = wiring.begin[kind, s, port] if port < ports else 0
            packets |= {(s, port, plane) for plane in range(2 * lanes) if int(begin) >> plane & 1}
    while packets:
        s, port, plane = packets.pop()
        w = int(following[s, min(port, ports)])
        for asked in entries[w] if w < wiring.switches else ():
            if asked >= ports or (plane, s, port, asked) in found:
                continue
            found.add((plane, s, port, asked))
            then = plane
            if wiring.by_hop:
                then = int(wiring.hop_lane[w, wiring.entry[s, port], asked])
                then += lanes if plane >= lanes else 0
            packets.add((w, asked, then))
    return found
