"""Benchmarks: python -m tests.bench [NAME …] [--full] [--out DIR] [--markdown FILE].

These are no tests: a missed goal is printed as such, and the exit code remains 0.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

from tests.bench import (
    assess_times,
    collectives,
    collectives_cost,
    demand,
    failure_live,
    growth,
    job_days,
    live_pass,
    minhop_entries,
    performance,
    second_start,
    what_if,
)
from tests.bench.machine import machine
from tests.bench.stored_results import StoredResults
from tests.bench.table import Table

BENCHES: dict[str, Callable[[bool], Iterator[Table]]] = {
    "failure-live": failure_live.tables,
    "pass-live": live_pass.tables,
    "once": second_start.tables,
    "assess": assess_times.tables,
    "what-if": what_if.tables,
    "job-days": job_days.tables,
    "collectives": collectives.tables,
    "collectives-cost": collectives_cost.tables,
    "demand": demand.tables,
    "minhop": minhop_entries.tables,
}
KEPT: dict[str, Callable[[bool, StoredResults], Iterator[Table]]] = {
    "performance": performance.tables,
    "growth": growth.tables,
}
"""Benchmarks that store each of their results. `tests.bench.page` runs them, and some `BENCHES`."""
HEAD = """# Benchmarks

Measured on {date} by `python -m tests.bench --markdown benchmarks.md` (`make bench`
prints the same). Benchmarks are not part of the test suite. Times depend on the load of the
machine; where two things are compared, they ran alternately in one run. Speed and quality of the
routes are on the page [performance](../../../docs/performance.md).

| | |
|---|---|
"""


def main() -> None:
    """Run benchmarks, print their tables, and write the document if requested."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    known = ", ".join([*BENCHES, *KEPT])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {known} (all)")
    parser.add_argument("--full", action="store_true", help="include the large fabrics (an hour)")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="store results in DIR, and continue from those there",
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write a document")
    given = parser.parse_args()
    if wrong := set(given.names) - set(BENCHES) - set(KEPT):
        parser.error(f"no benchmark is called {', '.join(sorted(wrong))}")

    facts = dict(machine())
    print("\n".join(f"{name}: {value}" for name, value in facts.items()))
    document = HEAD.format(date=date.today())
    document += "".join(f"| {name} | {value} |\n" for name, value in facts.items())
    kept = StoredResults(given.out)
    for name in given.names or [*BENCHES, *KEPT]:
        command = f"python -m tests.bench {name}{' --full' if given.full else ''}"
        found = BENCHES[name](given.full) if name in BENCHES else KEPT[name](given.full, kept)
        for table in found:
            print(table.text(), flush=True)
            document += f"\n{table.markdown(command)}"
            if given.markdown:  # after each table, so that an interrupted run leaves its results
                given.markdown.write_text(document)


if __name__ == "__main__":
    main()
