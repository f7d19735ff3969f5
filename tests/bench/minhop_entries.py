"""Our `minhop` beside a stock OpenSM's: `python -m tests.bench.minhop_entries`.

Prints, for each fabric of `../shared/data` (or `$SAR_DATA`) and 20 generated ones, the share of
equal entries, and how far load, phase contention and dark fiber are apart with a mix of jobs.
Needs OpenSM and ibsim; some minutes."""

from __future__ import annotations

import sys
from pathlib import Path

from sar_agent.commands.inputs import read_mix
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.quality import measure
from sar_agent.routing import Routes
from tests.data import data_root
from tests.worlds.minhop_fabrics import all_fabrics, compared


def measures_apart(fabric: Fabric, theirs: Routes, ours: Routes) -> float:
    """The largest relative difference of a measure over jobs `mix:1`."""
    mix = read_mix("mix:1", fabric)
    worst = 0.0
    a, b = (measure(fabric, mix, routes) for routes in (theirs, ours))
    for x, y in zip(a.jobs_detail, b.jobs_detail, strict=True):
        worst = max(worst, abs(x.throughput - y.throughput) / x.throughput)
    return worst


def main(names: list[str], data: Path | None = None) -> None:
    """`names`: parts of names; without any, all fabrics."""
    good = tried = 0
    print("| fabric | hosts | switches | equal entries | measures apart |\n|---|---|---|---|---|")
    for name, fabric in all_fabrics(data or data_root()):
        if names and not any(part in name for part in names):
            continue
        tried += 1
        try:
            theirs, ours, equal = compared(fabric)
        except SarError as error:
            print(f"| {name} | {fabric.terminals} | {fabric.switches} | {error} | |", flush=True)
            continue
        good += equal >= 0.98
        apart = "0" if equal == 1 else f"{measures_apart(fabric, theirs, ours):.1%}"
        print(
            f"| {name} | {fabric.terminals} | {fabric.switches} | {equal:.2%} | {apart} |",
            flush=True,
        )
    print(f"\n{good} of {tried} fabrics have at least 98 % equal entries")


if __name__ == "__main__":
    main(sys.argv[1:])
