"""Writes docs/performance.md: python -m tests.bench.page [--full] [--out DIR].

Measures what DIR does not hold yet, so a run that was interrupted goes on where it stopped, and a
file deleted from DIR is measured again. The page, its CSV and its pictures come from DIR alone.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from tests.bench import changes, failures, mixes, ours, performance, plots, roofline, scale
from tests.bench.fabrics import LARGE, LARGEST, MIDDLE, SMALL, fabric_of
from tests.bench.kept import Kept
from tests.bench.machine import machine
from tests.bench.table import Table
from tests.bench.timing import Times

DOCS = Path("docs")
PAGE, IMAGES = DOCS / "performance.md", DOCS / "images"
TREES = (SMALL, MIDDLE, LARGE, LARGEST)

HEAD = """# Performance

How fast routes are made, how good they are, how much they change, and how that grows. Quality is a
ratio to a proved bound: 1 cannot be beaten by any minimal-hop routing. Where a goal is missed, it
says so.

Measured on {date} at commit {commit} by `python -m tests.bench.page{full}`. OpenSM is Debian's, on
a fabric simulated by ibsim, with its own log as the clock; nothing here has run on real switches.
Job mixes are made up and seeded (`mix:1` …): 85 % of the hosts busy with jobs of 2 to 64 hosts,
scattered at random. The other benchmarks: [benchmarks](benchmarks.md).

| | |
|---|---|
"""
SECTIONS = {
    "performance": """## Time and quality, beside OpenSM

![Seconds over hosts for our engines and OpenSM's](images/performance-times.png)

- *Seconds*: of ours, whole calls after a first one, median (least … most); of OpenSM, the routing
  step from its log.
- *Peak memory*: of a process of its own, interpreter, libraries and fabric included.
- *Throughput*: mean (worst) of the jobs' shares of full speed while all of them do all-to-all at
  once. [Load is time](load-is-time.md) explains what that means for programs.
- *Lanes*: virtual lanes needed against deadlock; ours are proved, OpenSM's are the number
  that it reports (with the result of our check between hosts, if it is one lane).
- *Entries changed*: when one job ends and one of its size starts elsewhere, mean of {changes}
  times. OpenSM's engines know no jobs, so for them nothing changes.

`minhop` and `dfsssp` of sar-agent are there to compare with: OpenSM's rules, but for
[ties between ports](engines.md#minhop), and our kernels.
""",
    "mixes": """## Many job mixes

![Largest load over the least possible, for every mix and engine](images/performance-mixes.png)
""",
    "changes": """## A job starts or ends

The routes in force are kept where they are as good. Many steps in a row drift from what a full
computation finds, so the agent improves the routes once the jobs are quiet.
""",
    "failures": """## Something fails

First all pairs reach each other again, and this is proved; then the balance is improved.
""",
    "scale": """## Growth
""",
    "roofline": """## How near the machine's limits
""",
}
TABLES = {
    "performance": performance.tables,
    "mixes": mixes.tables,
    "changes": changes.tables,
    "failures": failures.tables,
    "scale": scale.tables,
    "roofline": roofline.tables,
}


def main() -> None:
    """Measure what is missing; write after every table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.page", description=__doc__)
    parser.add_argument("--full", action="store_true", help="the big fabrics, too")
    parser.add_argument("--out", type=Path, default=Path("out/bench"), metavar="DIR")
    given = parser.parse_args()
    kept = Kept(given.out)
    for document in documents(given.full, kept):
        PAGE.write_text(document)
    rows = mixes.mixes(mixes.HUNDRED, kept) + mixes.mixes(mixes.OTHERS, kept)
    mixes.write_csv(rows, mixes.CSV)
    plots.loads(rows, IMAGES / "performance-mixes.png")
    plots.times(_our_times(given.full, kept), _their_times(given.full, kept),
                IMAGES / "performance-times.png")  # fmt: skip


def documents(full: bool, kept: Kept) -> Iterator[str]:
    """The page as far as it is, after every table."""
    facts = kept("machine", _facts)
    head = HEAD.format(**facts["run"], full=" --full" if full else "")
    head += "".join(f"| {name} | {value} |\n" for name, value in facts["machine"].items())
    body, goals = "", []
    for name, tables in TABLES.items():
        body += f"\n{SECTIONS[name].replace('{changes}', str(ours.CHANGES))}"
        for table in tables(full, kept):
            print(table.text(), flush=True)
            body += f"\n{_section(name, table, full)}"
            goals += [f"{table.title}: {line}" for line in table.goals if "; goal " in line]
            yield head + _summary(goals) + body


def _summary(goals: list[str]) -> str:
    missed = [line for line in goals if line.endswith("NOT reached")]
    text = f"\n**Goals: {len(goals) - len(missed)} of {len(goals)} reached.**"
    if missed:
        text += " Not reached:\n\n" + "".join(f"- {line}\n" for line in missed)
    return text.rstrip() + "\n"


def _section(name: str, table: Table, full: bool) -> str:
    return table.markdown(f"python -m tests.bench {name}{' --full' if full else ''}", level=3)


def _facts() -> dict[str, dict[str, str]]:
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True
    )
    run = {"date": str(date.today()), "commit": commit.stdout.strip() or "unknown"}
    return {"run": run, "machine": dict(machine())}


def _our_times(full: bool, kept: Kept) -> dict[str, plots.Curve]:
    """On the trees of OpenSM's, and on those that grow."""
    curves = {}
    trees = [name for name in TREES if name in performance.wanted(full)]
    for engine in scale.ENGINES:
        found = {
            fabric_of(name).terminals: performance.measured(name, engine, kept).times.median
            for name in trees
        }
        found |= {
            one["hosts"]: Times(one["seconds"]).median
            for one in scale.measured(full, kept)
            if one["engine"] == engine
        }
        curves[engine] = sorted(found.items())
    return curves


def _their_times(full: bool, kept: Kept) -> dict[str, plots.Curve]:
    """On trees."""
    curves: dict[str, list[tuple[int, float]]] = {}
    wanted = performance.wanted(full)
    for name in TREES:
        fabric = fabric_of(name)
        for engine in wanted.get(name, ()):
            found = performance.measured_theirs(name, fabric, engine, kept)
            if found.seconds:
                curves.setdefault(engine, []).append((fabric.terminals, found.times.median))
    return dict(curves)


if __name__ == "__main__":
    main()
