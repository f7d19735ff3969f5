"""Our `minhop` beside a stock OpenSM's, on the fabrics of `../shared/data` (or `$SAR_DATA`) and 20
generated ones. Needs OpenSM and ibsim; some minutes."""

from __future__ import annotations

from collections.abc import Iterator

from sar_agent.commands.inputs import read_mix
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.quality import measure
from sar_agent.routing import Routes
from tests.bench.table import Table, goal
from tests.data import data_root
from tests.worlds.minhop_fabrics import all_fabrics, compared

ENOUGH = 0.98
"""The share of equal entries from which on a fabric counts as served alike."""


def measures_apart(fabric: Fabric, theirs: Routes, ours: Routes) -> float:
    """The largest relative difference of a measure over jobs `mix:1`."""
    mix = read_mix("mix:1", fabric)
    worst = 0.0
    a, b = (measure(fabric, mix, routes) for routes in (theirs, ours))
    for x, y in zip(a.jobs_detail, b.jobs_detail, strict=True):
        worst = max(worst, abs(x.throughput - y.throughput) / x.throughput)
    return worst


def tables(full: bool) -> Iterator[Table]:
    """One row for each fabric."""
    table = Table(
        "Our `minhop` beside a stock OpenSM's",
        ("fabric", "hosts", "switches", "equal entries", "measures apart"),
        "Real and generated fabrics, some of them damaged; the largest relative difference of a "
        "job's throughput under `mix:1`.",
    )
    good = 0
    for name, fabric in all_fabrics(data_root()):
        size = f"{fabric.terminals:,}", f"{fabric.switches:,}"
        try:
            theirs, ours, equal = compared(fabric)
        except SarError as error:
            table.add(name, *size, str(error), "")
            continue
        good += equal >= ENOUGH
        apart = 0.0 if equal == 1 else measures_apart(fabric, theirs, ours)
        table.add(name, *size, f"{equal:.2%}", f"{apart:.1%}")
    what = f"fabrics with at least {ENOUGH:.0%} equal entries"
    table.goals.append(goal(what, good, len(table.rows), "", at_least=True))
    yield table
