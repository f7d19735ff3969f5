"""The page: every row that was run, its verdict, its numbers and the command that made them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from sar_lab.papers.claims import NEAR
from sar_lab.papers.outcome import ResultTable
from sar_lab.papers.registry import CLASSES, experiments
from sar_lab.papers.result_store import StoredResult, stored_result
from sar_lab.statistics import caption

FILE = "reproduction.md"
INTRODUCTION = f"""\
# The papers' tables and figures, reproduced or not

Written by `sar-agent lab run all --out docs`. `sar-agent lab list` names the rows, `sar-agent lab
run NAME` runs one again; a row's numbers are kept in `reproduction/NAME.json`.

A verdict follows from claims taken from the paper: who is better, how a curve bends (order), and
numbers (value). The class says how near a number must be: E to the digit; S within {NEAR:.0%},
since job mixes, victims and seeds are ours; Q has no numbers. All claims hold: reproduced. Every
order holds, some number does not: same shape. Else the claims that do not hold are named, and why,
as far as we know. Brackets are 95 % confidence intervals.

No engine, pattern or model has a knob that was turned to fit. What was decided after a first look
at numbers: oblivious-fig5 compares means, as medians tie on CG.D-128; routing-keys-fig6 holds the
two lowest utilizations against the two highest; pftree-fig10 judges what noise adds to a gather;
`pftree-printed`, the paper's one way down to each host, was added when our own pFTree, which keeps
partitions apart better, left nothing to compare, and `pftree-wt` took that way over.
"""


def write_page(folder: Path) -> Path:
    """`folder/reproduction.md` of all rows that were ever run into this folder."""
    rows = {name: stored_result(folder, name) for name in experiments()}
    path = folder / FILE
    there = [row for row in rows.values() if row]
    path.write_text("\n".join(_lines(there, [n for n, row in rows.items() if not row])) + "\n")
    return path


def _lines(rows: Sequence[StoredResult], missing: Sequence[str]) -> Iterable[str]:
    yield INTRODUCTION
    summary = [[f"[{r['name']}](#{r['name']})", r["where"], r["class"], _short(r)] for r in rows]
    yield from ResultTable(["row", "where", "class", "verdict"], summary).lines()
    yield ""
    if missing:
        yield f"Not run: {', '.join(missing)}."
        yield ""
    for row in rows:
        yield from _section(row)
    minutes = sum(row["seconds"] for row in rows) / 60
    yield f"All rows together took {minutes:.0f} minutes of one process."


def _short(row: StoredResult) -> str:
    """The verdict without its reasons."""
    return str(row["verdict"]).partition(";")[0].partition(":")[0]


def _section(row: StoredResult) -> Iterable[str]:
    yield from (
        f"## {row['name']}",
        "",
        f"{row['where']}. Class {row['class']}: {CLASSES[row['class']]}.",
        "",
        f"**Published:** {row['published']}.",
        "",
        f"**Verdict:** {row['verdict']}.",
        "",
    )
    ours = row["ours"]
    if "claims" in ours:
        yield from (row["table"], "")
    elif row["table"]:
        yield from ("```", row["table"], "```", "")
    if row["picture"]:
        yield from (f"![{row['name']}]({row['picture']})", "")
    if ours.get("how"):
        yield from (ours["how"], "")
    for table in ours.get("tables", []):
        yield from (*ResultTable(table["head"], table["rows"]).lines(), "")
    said = caption(row["command"], row["seeds"])
    yield f"*{said[0].upper()}{said[1:]}, {row['seconds']:.0f} s.*"
    yield ""
