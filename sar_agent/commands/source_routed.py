"""What `route` tells of engines that route by source, which one table cannot hold."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sar_agent.fabric import Fabric
    from sar_agent.jobs import JobMix
    from sar_agent.routing import Options
    from sar_agent.routing.engine import SourceRouted
    from sar_agent.routing.path_routes import PathRoutes


def write_offsets(path: Path, routes: PathRoutes) -> None:
    """For each host port the LID offset to send to: what `UCX_IB_LID_PATH_BITS` is for."""
    import numpy as np

    from sar_agent.util.text_files import write_text

    fabric = routes.fabric
    ports = np.flatnonzero(fabric.is_host_port).astype(np.int32)
    lines = ["# host port-guid lid-offset"]
    for t, offset in zip(ports.tolist(), routes.nca(ports, ports).tolist(), strict=True):
        lines.append(f"{fabric.terminal_host[t]} 0x{fabric.terminal_guid[t]:016x} {offset}")
    write_text(path, "\n".join(lines) + "\n")


def describe(
    engine: SourceRouted, fabric: Fabric, mix: JobMix, options: Options
) -> tuple[dict[str, Any], str]:
    """(for JSON, in words): the jobs' all-to-alls on these routes; with a pattern its phases."""
    from sar_agent.keys.routes.colored import contention, phases
    from sar_agent.routing.path_routes import path_traffic

    began = time.perf_counter()
    paths = engine.paths(fabric, mix, options)
    seconds = time.perf_counter() - began
    efi, load = path_traffic(paths, mix)
    most = int(efi.max(initial=0))
    found = {
        "engine": engine.name,
        "seconds": seconds,
        "source_routed": True,
        "lid_offsets_needed": paths.view.ncas,
        "effective_efi_max": most,
        "load_max": float(load.max(initial=0.0)),
    }
    words = (
        f"{engine.name}: by source, so a table for each of {paths.view.ncas} roots, or none; "
        f"effective EFI max {most}, largest load {found['load_max']:.2f}"
    )
    if options.pattern:
        each = [contention(paths, *phase) for phase in phases(fabric, mix, options.pattern)]
        found["contention"] = [{"flows": one.flows, "bound": one.bound} for one in each]
        worst = max((one.flows for one in each), default=0)
        bound = max((one.bound for one in each), default=0)
        words += f"; {options.pattern}: {worst} flows on a link at most (bound {bound})"
    return found, words
