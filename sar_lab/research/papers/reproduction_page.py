"""The page of reproductions: the verdict, the numbers and the command of every row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from sar_lab.research.papers.claims import NEAR
from sar_lab.research.papers.outcome import ResultTable
from sar_lab.research.papers.registry import CLASSES, experiments
from sar_lab.research.papers.result_store import StoredResult, stored_result
from sar_lab.research.statistics import caption

FILE = "reproduction.md"
INTRODUCTION = f"""\
# The papers' tables and figures, reproduced or not

[All pages](../../../docs/README.md) · [Glossary](../../../docs/glossary.md)

Written by `sar-lab lab run all --out sar_lab/research/pages`. `sar-lab lab list` lists the rows,
`sar-lab lab run NAME` runs one again; the numbers of a row are in `reproduction/NAME.json`.

A verdict follows from what the paper prints: which of two things is better or how a curve bends
(order), and numbers (value); the two are counted apart. Each claim points to a quote, which a row
shows (`sar_lab/research/papers/published.toml`; `tests/unit/test_published.py` finds every quote in
the papers' texts where they are). **We had texts and no figures**: of a curve we know what the text
says of it. The kind of a claim is that of its quote: *printed*; *read off*, a number that the text
has beside the axes of a figure; *erratum*, where print and prose or arithmetic disagree and our
number is held against what must have been meant, which the verdict says; *derived*, which follows
from the print but is not in it: such a claim is a test of ours and counts apart.

The class gives the tolerance of a number: E is exact; S is within {NEAR:.0%}, since job mixes,
victims and seeds are ours; Q has no numbers, or numbers within the same. If all claims hold, the
row is reproduced. It has the same shape if there is an order claim, all of them hold, and at least
half of the numbers do. Otherwise the verdict names the claims that do not hold and, if known, the
reason. An order over seeds is judged by pairs of the same seed: where the 95 % bootstrap interval
of their ratio contains 1, the two are not told apart, and the claim does not hold. An order is
judged by its own words: its names choose the numbers, its direction is the comparison, its number
the bound, so the words of a claim and its code cannot differ. Inputs that a row takes from its
paper are no claims. Brackets are 95 % confidence intervals.
[A page of its own](not-reproduced.md) lists what we could not reproduce, and what we think is wrong
in print.

Where a mechanism of ours differs from the print, the row has columns for the mechanism *as
printed*, in each reading of it, and its verdict says *with …* what is ours.

**Three choices were fitted**, and the verdicts of their rows say so: the tree and the sizes of
sar-fig2, which were chosen because they come near its numbers; the ways that pFTree-Ext may take
without a quota, found after a look at what the delays of Table 4 imply (pftree-fig10, -fig11,
-table4); and the Conga-like peer of routing-keys-fig6 to -fig9, chosen after a look at eight such
peers. `pftree-one-short`, a hypothesis, was found by a reviewer among 55 variants and is no claim.
Other decisions were made after a first look at numbers:

- Orders became sentences that are judged by their words. Some had said less or more than their code
  tested: "almost all trees" is all but 2 of 16, "half" was 60 %, "far above" was above, and
  "pFTree" was pFTree as printed. Two sentences that had been one are two claims. No answer changed.
- `pftree-printed` was for some time a variant of our engine that mixed partitions, since ours left
  nothing to compare. It now is Algorithms 1 to 4 to the letter: they keep the two partitions apart,
  which Algorithm 2 arranges.
- routing-keys-fig7 judged 2.7 as "at least 2" for some time; it is a value again. Its claim that
  ARK is before D-mod-k for 8 and 32 applications was struck, since the text does not say so.
- In routing-keys-fig6 to -fig9 barriers cost nothing at first, and routing-keys-fig9 held in part.
  The paper explains its results by barriers, so a round of one now takes 1.4 µs, from a source of
  2007. The time was fixed before the rows ran with it; routing-keys-barriers sweeps it.
- The baselines of the rows of sar-2016 were our engines of OpenSM's names. Ours balance ties where
  OpenSM takes the lowest port; the baselines are OpenSM's own tables now (`opensm-*`).
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
    yield from (row["table"], "")
    if row["picture"]:
        yield from (f"![{row['name']}]({row['picture']})", "")
    yield from (ours["how"], "")
    for table in ours["tables"]:
        yield from (*ResultTable(table["head"], table["rows"]).lines(), "")
    text = caption(row["command"], row["seeds"])
    yield f"*{text[0].upper()}{text[1:]}, {row['seconds']:.0f} s.*"
    yield ""
