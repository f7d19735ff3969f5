"""The page of reproductions: the verdict, the numbers and the command of every row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from sar_agent.util.extensions import extensions
from sar_lab.research.papers.outcome import ResultTable
from sar_lab.research.papers.published import THEIRS
from sar_lab.research.papers.registry import (
    CLASSES,
    FILE,
    GROUP,
    experiments,
    touched,
    verdict_before,
)
from sar_lab.research.papers.result_store import StoredResult, stored_result
from sar_lab.research.statistics import caption

PAGE = "reproduction.md"
INTRODUCTION = FILE.with_name("introduction.md")


def write_page(folder: Path) -> Path:
    """Writes `folder/reproduction.md` from all rows whose results are in this folder, those of
    other packages last."""
    rows = {name: stored_result(folder, name) for name in experiments()}
    others = [stored_result(folder, point.name) for point in extensions(GROUP)]
    path = folder / PAGE
    stored = [row for row in (*rows.values(), *others) if row]
    path.write_text("\n".join(_lines(stored, [n for n, row in rows.items() if not row])) + "\n")
    return path


def _lines(rows: Sequence[StoredResult], missing: Sequence[str]) -> Iterable[str]:
    yield INTRODUCTION.read_text()
    summary = [
        [
            f"[{r['name']}](#{r['name']})",
            r["where"],
            r["class"],
            short_verdict(r),
            f"{r['seconds']:.0f}",
        ]
        for r in rows
    ]
    head = ["row", "where", "class", "verdict", "seconds of processors"]
    yield from ResultTable(head, summary).lines()
    yield ""
    if missing:
        yield f"Not run: {', '.join(missing)}."
        yield ""
    yield f"{share_of(rows, ())} {share_of(rows, ('sar-table1',))}"
    yield ""
    changed = [
        [row["name"], before, short_verdict(row)]
        for row in rows
        if (before := verdict_before(row["name"])) and before != short_verdict(row)
    ]
    why = "[why](not-reproduced.md#rules-that-changed)"
    yield f"Verdicts that a review of 27 November 2026 changed ({why}):"
    yield ""
    yield from ResultTable(["row", "before", "now"], changed).lines()
    yield ""
    for row in rows:
        yield from _section(row)
    minutes = sum(row["seconds"] for row in rows) / 60
    yield f"All rows together took {minutes:.0f} minutes of processors ([run times](run-times.md))."


def share_of(rows: Sequence[StoredResult], without: Sequence[str]) -> str:
    """How many of the papers' numbers hold, and how many of these with nothing that qualifies them.
    0 and 1 are left out: a count of nothing, and the least delay that there can be."""
    plain, every, holding = 0, 0, 0
    for row in rows:
        for claim in row["ours"]["claims"] if row["name"] not in without else ():
            if (
                claim["kind"] in THEIRS
                and not claim["order"]
                and claim["published"] not in ("0", "1")
            ):
                every += 1
                holding += bool(claim["holds"])
                about = row["ours"]["qualified"] and touched(row["name"], claim["says"])
                plain += bool(claim["holds"]) and not about
    head = f"Without {', '.join(without)}, of" if without else "Of"
    return (
        f"{head} {every} printed numbers (0 and 1 left out) {holding} hold, {plain} "
        f"({plain / max(1, every):.0%}) without a qualifier."
    )


def short_verdict(row: StoredResult) -> str:
    """The verdict without its reasons."""
    return str(row["verdict"]).partition(";")[0]


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
