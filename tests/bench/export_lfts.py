"""The time to write all forwarding tables as a dump in OpenSM's format."""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.export import export_routes
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from tests.bench.bench_fabrics import size_of
from tests.bench.table import Table, goal
from tests.bench.timing import repeat

SPEC = "xgft:3;12,18,20;1,12,5"


def tables(full: bool) -> Iterator[Table]:
    """The table of `--export lfts`."""
    fabric = load_fabric(SPEC)
    routes = load_engine("minhop").route(fabric, JobMix(()), Options())
    with tempfile.TemporaryDirectory(prefix="sar-bench-") as name:
        folder = Path(name)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        times = repeat(lambda: export_routes(folder, fabric, routes, ["lfts"]), 5)
        more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        size = (folder / "lfts.dump").stat().st_size
    table = Table(
        f"`--export lfts`, {size_of(fabric)}",
        ("written", "seconds", "of that CPU, s", "more memory at the peak"),
        f"`{SPEC}`: nearly as many ports and switches as a real fabric of 4,341 ports and 666 "
        "switches. Each switch is written before the next one is formatted.",
    )
    cpu = type(times)(times.cpu)
    table.add(f"{size / 1e6:.0f} MB", times.show(".2f"), cpu.show(".2f"), f"{more / 1024:.0f} MB")
    table.goals.append(goal("export", times.median, 2, "s"))
    table.goals.append(goal("export, CPU alone", cpu.median, 2, "s"))
    yield table
