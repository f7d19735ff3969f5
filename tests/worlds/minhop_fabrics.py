"""Fabrics on which `minhop` is compared with OpenSM's, intact and damaged, and the comparison."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from sar_lab.opensm_tables.simulated import simulated_routes

SMALL = (("xgft:2;4,6;1,3", 3), ("xgft:3;3,4,4;1,2,3", 5), ("torus:3x3x3", 4))
"""For the live test: a spec, and how many cables of each kind are out."""
GENERATED = (
    *(f"xgft:2;12,8;1,{roots}" for roots in (8, 6, 4, 3)),
    *("xgft:2;36,18;1,18", "xgft:2;36,18;1,12", "xgft:3;4,4,4;1,4,4", "xgft:3;6,6,6;1,3,3"),
    *("torus:4x4", "torus:4x4x4", "standin:taurus", "standin:tsubame"),
)
DAMAGED = (
    *("xgft:2;12,8;1,8", "xgft:2;12,8;1,4", "xgft:2;36,18;1,18", "xgft:3;4,4,4;1,4,4"),
    *("xgft:3;6,6,6;1,3,3", "torus:4x4x4", "standin:taurus", "standin:tsubame"),
)


def damaged(fabric: Fabric, cables: int, seed: int = 7) -> Fabric:
    """The fabric with as many cables out between switches, and as many of hosts."""
    chosen = np.random.default_rng(seed)
    switches = chosen.choice(fabric.channels, cables, replace=False)
    hosts = chosen.choice(fabric.terminals, cables, replace=False)
    return fabric.with_links_down(switches.tolist(), hosts.tolist())


def compared(fabric: Fabric, seconds: float = 600) -> tuple[Routes, Routes, float]:
    """OpenSM's tables, ours, and the share of equal entries among those of live ports."""
    theirs = simulated_routes(fabric, "minhop", {}, seconds)
    ours = load_engine("minhop").route(fabric, JobMix(()), Options())
    live = np.flatnonzero(fabric.terminal_up)
    return theirs, ours, float((theirs.egress == ours.egress)[0, live].mean())


def all_fabrics(data: Path) -> list[tuple[str, Fabric]]:
    """Name and fabric: those of `data`, then 20 generated ones, the last of which are damaged."""
    paths = sorted(data.glob("*.ibnetdiscover"))
    found = [(path.stem, load_fabric(str(path))) for path in paths]
    found += [(spec, load_fabric(spec)) for spec in GENERATED]
    for spec in DAMAGED:
        fabric = load_fabric(spec)
        found.append((f"{spec}, damaged", damaged(fabric, max(3, fabric.channels // 40))))
    return found
