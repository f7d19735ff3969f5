"""Writes docs/performance.md: python -m tests.bench.page [--full] [--out DIR].

Measures only what DIR does not contain, so an interrupted run continues where it stopped, and a
result that is deleted from DIR is measured again.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import date
from functools import partial
from pathlib import Path

from tests.bench import (
    assess_times,
    growth,
    our_engines,
    performance,
    second_start,
)
from tests.bench.machine import machine
from tests.bench.stored_results import StoredResults, other_day
from tests.bench.table import Table

PAGE = Path("docs/performance.md")

HEAD = """# Performance

[All pages](README.md) · [Glossary](glossary.md)

The time to compute routes, their quality, and how much of them changes.
Quality is a ratio to a proved bound: no minimal-hop routing is better than 1. `sar-plus` stops at a
load of 1, which slows nobody: where the bound is below 1, its ratio is above 1.

Where a table names no other day, it was measured on {date} at commit {commit} by
`python -m tests.bench.page{full}`. OpenSM is Debian's, on a fabric simulated by ibsim, with its own
log as the clock; nothing here has run on real switches.
Job mixes are synthetic and seeded (`mix:1` …): 85 % of the hosts busy with jobs of 2 to 64 hosts,
scattered at random, which is the worst case of fat-tree routes. Other benchmarks, and what the
times below were on other machines: [benchmarks](../sar_lab/research/pages/benchmarks.md). Times
of commands depend on what else the machine does.

| | |
|---|---|
"""
SECTIONS = {
    "performance": """## Time and quality, beside OpenSM

- *Seconds*: for our engines, CPU time of whole calls after a first one, median (least … most), as
  other programs may run and an engine uses one processor; for OpenSM, the routing step according
  to its log.
- *Peak memory*: of a separate process, with interpreter, libraries and fabric.
- *Throughput*: mean (worst) of the jobs' shares of full speed while all of them do all-to-all at
  once. [Load is time](load-is-time.md) has the effect on programs.
- *Lanes*: virtual lanes needed against deadlock. Ours are proved, OpenSM's are its own statement
  (for one lane, the result of our check between hosts is in brackets).
- *Entries changed*: when one job ends and one of its size starts elsewhere, mean of {changes}
  times. OpenSM's engines ignore jobs, so for them nothing changes.

`minhop` and `dfsssp` of sar-agent are for comparison: they follow OpenSM's rules with our kernels.
[`minhop`](engines.md#minhop) makes OpenSM's tables, `dfsssp` breaks ties differently.
""",
    "assess": """## Commands, from their start to their end
""",
}
FIXED: dict[str, Callable[[bool], Iterator[Table]]] = {
    "assess": assess_times.tables,
    "once": second_start.tables,
}
"""Of one size here, whether `--full` or not; each is stored whole."""


def _stored(name: str, full: bool, kept: StoredResults) -> Iterator[Table]:
    found = kept(name, lambda: [asdict(table) for table in FIXED[name](False)])
    for table in found:
        yield Table(**table | {"note": table["note"] + other_day(kept, {"": (name,)})})


TABLES: dict[str, Callable[[bool, StoredResults], Iterator[Table]]] = {
    "performance": performance.tables,
    "growth": growth.tables,
    **{name: partial(_stored, name) for name in FIXED},
}


def main() -> None:
    """Measure missing results; write the page after every table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.page", description=__doc__)
    parser.add_argument("--full", action="store_true", help="the big fabrics, too")
    parser.add_argument("--out", type=Path, default=Path("out/bench"), metavar="DIR")
    given = parser.parse_args()
    kept = StoredResults(given.out)
    for document in documents(given.full, kept):
        PAGE.write_text(document)


def documents(full: bool, kept: StoredResults) -> Iterator[str]:
    """The page after every table."""
    facts = kept("machine", _facts)
    head = HEAD.format(**facts["run"], full=" --full" if full else "")
    head += "".join(f"| {name} | {value} |\n" for name, value in facts["machine"].items())
    body = ""
    for name, tables in TABLES.items():
        if section := SECTIONS.get(name):
            body += f"\n{section.replace('{changes}', str(our_engines.CHANGES))}"
        for table in tables(full, kept):
            print(table.text(), flush=True)
            body += f"\n{_section(name, table, full)}"
            yield head + body


def _section(name: str, table: Table, full: bool) -> str:
    larger = " --full" if full and name not in FIXED else ""
    return table.markdown(f"python -m tests.bench {name}{larger}", level=3)


def _facts() -> dict[str, dict[str, str]]:
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True
    )
    run = {"date": str(date.today()), "commit": commit.stdout.strip() or "unknown"}
    return {"run": run, "machine": dict(machine())}


if __name__ == "__main__":
    main()
