"""How `route` reports on engines that route by source, whose routes do not fit into one table."""

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
    """Writes the LID offset to send to for each host port: the value of `UCX_IB_LID_PATH_BITS`."""
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
    """The load of the jobs' all-to-alls on these routes, and with a pattern the contention of its
    phases: as a JSON object, and as a sentence."""
    from sar_agent.keys.routes.colored import contention, phases
    from sar_agent.routing.path_routes import path_traffic

    started = time.perf_counter()
    paths = engine.paths(fabric, mix, options)
    seconds = time.perf_counter() - started
    efi, load = path_traffic(paths, mix)
    efi_max = int(efi.max(initial=0))
    report = {
        "engine": engine.name,
        "seconds": seconds,
        "source_routed": True,
        "lid_offsets_needed": paths.view.ncas,
        "effective_efi_max": efi_max,
        "load_max": float(load.max(initial=0.0)),
    }
    sentence = (
        f"{engine.name} routes by source and needs {paths.view.ncas} LID offsets, one per root; "
        f"effective EFI max {efi_max}, largest load {report['load_max']:.2f}"
    )
    if options.pattern:
        results = [contention(paths, *phase) for phase in phases(fabric, mix, options.pattern)]
        report["contention"] = [{"flows": each.flows, "bound": each.bound} for each in results]
        worst = max((each.flows for each in results), default=0)
        bound = max((each.bound for each in results), default=0)
        sentence += f"; {options.pattern}: at most {worst} flows on a link (bound {bound})"
    return report, sentence
