"""Writes docs/research/performance.md: python -m tests.bench.page [--full] [--out DIR].

Measures only what DIR does not contain, so an interrupted run continues where it stopped, and a
result that is deleted from DIR is measured again. The page, its CSV and its pictures come from DIR.
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
    export_lfts,
    failures,
    job_changes,
    load_gaps,
    mixes,
    our_engines,
    performance,
    plots,
    scale,
    second_start,
)
from tests.bench.bench_fabrics import LARGE, LARGEST, MIDDLE, SMALL, fabric_of
from tests.bench.machine import machine
from tests.bench.stored_results import StoredResults
from tests.bench.table import Table
from tests.bench.timing import Times

DOCS = Path("docs/research")
PAGE, IMAGES = DOCS / "performance.md", DOCS / "images"
TREES = (SMALL, MIDDLE, LARGE, LARGEST)

HEAD = """# Performance

[All pages](../README.md) · [Glossary](../glossary.md)

The time to compute routes, their quality, how much of them changes, and how all this grows.
Quality is a ratio to a proved bound: no minimal-hop routing is better than 1. Missed goals are
marked.

Measured on {date} at commit {commit} by `python -m tests.bench.page{full}`. OpenSM is Debian's, on
a fabric simulated by ibsim, with its own log as the clock; nothing here has run on real switches.
Job mixes are synthetic and seeded (`mix:1` …): 85 % of the hosts busy with jobs of 2 to 64 hosts,
scattered at random, which is the worst case of fat-tree routes. Other benchmarks, and what the
times below were on other machines: [benchmarks](benchmarks.md).

| | |
|---|---|
"""
SECTIONS = {
    "performance": """## Time and quality, beside OpenSM

![Seconds over hosts for our engines and OpenSM's](images/performance-times.png)

- *Seconds*: for our engines, whole calls after a first one, median (least … most); for OpenSM, the
  routing step according to its log.
- *Peak memory*: of a separate process, with interpreter, libraries and fabric.
- *Throughput*: mean (worst) of the jobs' shares of full speed while all of them do all-to-all at
  once. [Load is time](load-is-time.md) has the effect on programs.
- *Lanes*: virtual lanes needed against deadlock. Ours are proved, OpenSM's are its own statement
  (for one lane, the result of our check between hosts is in brackets).
- *Entries changed*: when one job ends and one of its size starts elsewhere, mean of {changes}
  times. OpenSM's engines ignore jobs, so for them nothing changes.

`minhop` and `dfsssp` of sar-agent are for comparison: they follow OpenSM's rules, except for
[ties between ports](../engines.md#minhop), with our kernels.
""",
    "mixes": """## Many job mixes

![Largest load over the least possible, for every mix and engine](images/performance-mixes.png)
""",
    "changes": """## A job starts or ends

Entries of the routes in force stay where they are as good.
""",
    "failures": """## Something fails

First, routes for all pairs are repaired and proved; improvements follow.
""",
    "scale": """## Growth
""",
    "gaps": """## Other fabrics
""",
    "assess": """## Commands, from their start to their end
""",
}
TAIL = """
## Where a job change spends its time

At 11,664 hosts, `sar-plus`, 40 changes to the plan, CPU time of the agent's thread under cProfile,
mean of a change, on two cores of an AMD EPYC at a load average of 9 to 12, in two runs (before →
now):

| | ms |
|---|---:|
| routes | 116 → 36 |
| of that: hot channels relieved | 69 → 13 |
| of that: the digest of the jobs | 17 → 7 |
| check, certificate, measures | 31 → 27 |
| to the plan | 149 → 65 |

Paths that cross hot channels were all removed and placed again together, and a move that did not
help was undone; six such moves used up what a change may place. Now paths are placed again one at a
time, the lightest first, and only while their channel is still hot; few channels far above all
others are relieved at once. Looked at after every fourth of
40 changes, the largest load was at most 1.033 times the bound, mostly below 1.025.

## Tried, of no use

- *`updn` where some leaf switches share no root*: ways of their own for the pairs that it does not
  join, turns added one by one to a topological order that is kept. As soon as switches are lifted
  for such pairs (`routing/root_sets.py`) no pair is left on sites like those of the tests: the same
  tables on 59 random ones, and 150 lines more.
- *`updn` on such sites, each destination taken out and grown again* once or three times: over 21
  sites and five mixes each, the mean of load / bound was 1.44 and 1.46 instead of 1.47, the worst
  2.21 in each case.
- *The search for one lane*, ended at the first order of the switches that needs only one: quicker
  by 0.1 s for each order on 600 switches, but `sar` then needed a second lane on one of the sites
  in [lanes](../lanes.md#one-lane-where-it-costs-next-to-nothing).
- *Small cases by HiGHS* (a binary for each entry): on `torus:4x4`, `mix:4`, 60 s improved neither
  the bound (0.44) nor the routes (0.50), on a loaded machine. On `psmn-x5` it found 1.046 times the
  bound for `mix:4` within 35 s and 1.049 for `mix:2` within 5 min; simulated annealing, which
  `sar-plus` uses now, finds 1.045 and 1.039 in half a second. HiGHS moved the bound in 25 min no
  more than before, so that the rest may be the bound's.
- *One long annealing* of 8 million moves instead of eight short ones: on `psmn-x5`, `mix:2`, one of
  eight random numbers reached 1.039 and five 1.055, with 4 million moves one and four.
- *A few trees of `psmn-x5` taken out and grown again* in random order, among prices with random
  errors, up to 3 % worse accepted: 30,000 such moves found nothing better than `sar-plus` had.
- *More rounds for hot channels of sar-plus that stay hot* (their paths placed again up to eight
  times before a move counts as failed, the heaviest first in every second round): of 200
  plans at 1,728 hosts, 26 and 29 were above 1.03 times the bound without it (two sequences of
  jobs), 8 to 21 and 30 to 34 with it.
- *No indentation in `assess.json`*, so that the encoder in C serves: 20 ms of 9.3 s, although a
  profiler showed more.
- *The comparisons of `minhop` as one number*: no gain, where those of `ftree` take a third less
  time (0.61 s instead of 0.89 at 11,664 hosts).
- *Orders of the switches examined on two processors*, in the search for one lane: no gain beyond
  the scatter at 556 switches, and longer on small fabrics.
- *Annealing ended where the first two or four searches find nothing*: `psmn-x5`, `mix:5` is found
  later only, and all searches take little longer.
- *No garbage collection during a poll of squeue*: at most 8 % of the CPU time, mostly less.
- *Hot channels of sar-plus cleared together with those that could carry their traffic* (all that
  leave one switch up, or enter it down): four switches at a time often made another peak, and were
  undone; one at a time left some 20 hot channels. 25 changes ended at 1.02 to 1.085 times the
  bound; with four times as many moves 40 changes ended at 1.02 to 1.06, and took 207 ms in the
  median.
- *Two processors for one table of sar or dfsssp*: considered only. Each tree reads the weights that
  the last one left, so only the work within a tree could be divided, and that is 0.15 ms at 65,536
  hosts. `sar-plus` places trees in two halves that do not see each other's last 64 trees; the
  papers' engines must not.
- *The halves of sar-plus in other sizes*: with 32 and 128 trees in a batch, or the last 2 or 10 %
  of the trees one after the other, the largest load was as good within 0.3 % (mean of eight mixes
  at 8,192, 11,664 and 27,648 hosts), and the time up to 10 % more.
"""
FIXED: dict[str, Callable[[bool], Iterator[Table]]] = {
    "gaps": load_gaps.tables,
    "assess": assess_times.tables,
    "once": second_start.tables,
    "export": export_lfts.tables,
}
"""Of one size here, whether `--full` or not; each is stored whole."""


def _stored(name: str, full: bool, kept: StoredResults) -> Iterator[Table]:
    found = kept(name, lambda: [asdict(table) for table in FIXED[name](False)])
    return (Table(**table) for table in found)


TABLES: dict[str, Callable[[bool, StoredResults], Iterator[Table]]] = {
    "performance": performance.tables,
    "mixes": mixes.tables,
    "changes": job_changes.tables,
    "failures": failures.tables,
    "scale": scale.tables,
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
    rows = mixes.mixes(mixes.HUNDRED, kept) + mixes.mixes(mixes.OTHERS, kept)
    mixes.write_csv(rows, mixes.CSV)
    plots.loads(rows, IMAGES / "performance-mixes.png")
    plots.times(_our_times(given.full, kept), _their_times(given.full, kept),
                IMAGES / "performance-times.png")  # fmt: skip


def documents(full: bool, kept: StoredResults) -> Iterator[str]:
    """The page after every table."""
    facts = kept("machine", _facts)
    head = HEAD.format(**facts["run"], full=" --full" if full else "")
    head += "".join(f"| {name} | {value} |\n" for name, value in facts["machine"].items())
    body, goals = "", []
    for name, tables in TABLES.items():
        if section := SECTIONS.get(name):
            body += f"\n{section.replace('{changes}', str(our_engines.CHANGES))}"
        for table in tables(full, kept):
            print(table.text(), flush=True)
            body += f"\n{_section(name, table, full)}"
            goals += [f"{table.title}: {line}" for line in table.goals if "; goal " in line]
            yield head + _summary(goals) + body + TAIL


def _summary(goals: list[str]) -> str:
    missed = [line for line in goals if line.endswith("NOT reached")]
    text = f"\n**Goals: {len(goals) - len(missed)} of {len(goals)} reached.**"
    if missed:
        text += " Not reached:\n\n" + "".join(f"- {line}\n" for line in missed)
    return text.rstrip() + "\n"


def _section(name: str, table: Table, full: bool) -> str:
    larger = " --full" if full and name not in FIXED else ""
    return table.markdown(f"python -m tests.bench {name}{larger}", level=3)


def _facts() -> dict[str, dict[str, str]]:
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True
    )
    run = {"date": str(date.today()), "commit": commit.stdout.strip() or "unknown"}
    return {"run": run, "machine": dict(machine())}


def _our_times(full: bool, kept: StoredResults) -> dict[str, plots.Curve]:
    """Times of our engines on the trees of OpenSM's and of the growth table."""
    curves = {}
    trees = [name for name in TREES if name in performance.wanted(full)]
    for engine in scale.ENGINES:
        found = {
            fabric_of(name).terminals: performance.measured(name, engine, kept).times.median
            for name in trees
        }
        found |= {
            row["hosts"]: Times(row["seconds"]).median
            for row in scale.measured(full, kept)
            if row["engine"] == engine
        }
        curves[engine] = sorted(found.items())
    return curves


def _their_times(full: bool, kept: StoredResults) -> dict[str, plots.Curve]:
    """Times of OpenSM's engines on trees."""
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
