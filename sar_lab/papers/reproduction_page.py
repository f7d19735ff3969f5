"""The page of reproductions: the verdict, the numbers and the command of every row."""

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

Written by `sar-agent lab run all --out docs/research`. `sar-agent lab list` lists the rows,
`sar-agent lab run NAME` runs one again; the numbers of a row are in `reproduction/NAME.json`.

A verdict follows from claims of the paper: which of two things is better or how a curve bends
(order), and numbers (value). The class gives the tolerance of a number: E is exact; S is within
{NEAR:.0%}, since job mixes, victims and seeds are ours; Q has no numbers. If all claims hold, the
row is reproduced. If every order holds but some number does not, it has the same shape. Otherwise
the verdict names the claims that do not hold and, if known, the reason. Brackets are 95 %
confidence intervals.

No parameter of an engine, pattern or model was fitted to these results. Some decisions were made
after a first look at numbers: oblivious-fig5 compares means, because medians tie on CG.D-128;
routing-keys-fig6 compares the two lowest utilizations with the two highest; pftree-fig10 judges
what noise adds to a gather. `pftree-printed`, with the paper's single way down to each host, was
added because our own pFTree separates partitions better and left nothing to compare; `pftree-wt`
uses that single way, too.
"""


def write_page(folder: Path) -> Path:
    """Writes `folder/reproduction.md` from all rows whose results are in this folder."""
    rows = {name: stored_result(folder, name) for name in experiments()}
    path = folder / FILE
    stored = [row for row in rows.values() if row]
    path.write_text("\n".join(_lines(stored, [n for n, row in rows.items() if not row])) + "\n")
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
    text = caption(row["command"], row["seeds"])
    yield f"*{text[0].upper()}{text[1:]}, {row['seconds']:.0f} s.*"
    yield ""
