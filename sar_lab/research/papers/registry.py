"""The rows: every table and figure of the papers, and our studies of peers.

A row is a record (`sar_lab/research/rows.toml`: where it is in a paper, its class, its seeds, the
words of its page) and a function of its name (`sar_fig2` of `sar-fig2`), which gives claims, tables
and a picture. What that function measures it asks `measured` functions for, whose draws are kept.
Other packages bring rows as entry points, each an `Experiment` (docs/extend.md).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from sar_agent.errors import InputError
from sar_agent.util.extensions import extensions, load_point, package_of
from sar_lab.research.papers.claims import Claim
from sar_lab.research.papers.outcome import Outcome
from sar_lab.research.papers.published import all_quotes

FILE = Path(__file__).parent.with_name("rows.toml")
PACKAGES = {"papers": "sar_lab.research.papers", "peers": "sar_lab.research.peers"}
GROUP = "sar_lab.rows"
"""Entry points of rows of other packages."""
EMULATED = "P"
"""The class of rows that `lab run` measures by name alone, since their times need root and a quiet
machine. Else they are judged from the record."""
CLASSES = {
    "E": "the same numbers",
    "S": "over seeds, within the scatter",
    "Q": "the same order or shape",
    "N": "not without hardware or traces that nobody published",
    EMULATED: "the same order over real packets, emulated on a small fabric",
}


@dataclass(frozen=True)
class Experiment:
    """A row of the list."""

    name: str
    """Its name on the command line, such as `routing-keys-fig4`."""
    where: str
    """The paper and the figure."""
    kind: str
    """A key of `CLASSES`."""
    published: str
    """What the paper prints: the quotes of the row, or one line on a study of ours."""
    seeds: int
    """The default number of seeds; 0 where nothing is random."""
    run: Callable[[Sequence[int]], Outcome]


def experiments() -> dict[str, Experiment]:
    """The papers' tables and figures by name; Fig. 9 comes before Fig. 10."""
    return _rows_of(PACKAGES["papers"])


def peer_studies() -> dict[str, Experiment]:
    """Studies of published methods beside ours, by name."""
    return _rows_of(PACKAGES["peers"])


def outside_rows() -> dict[str, Experiment]:
    """Rows of other packages, by name. Raises `InputError` for one that cannot be loaded, is no
    `Experiment`, or has the name of another row."""
    ours = experiments().keys() | peer_studies().keys()
    return {point.name: _outside(point, ours) for point in extensions(GROUP)}


def _outside(point: EntryPoint, ours: Collection[str]) -> Experiment:
    row = load_point(point, "row")
    of = f"the row {point.name!r} of {package_of(point)}"
    if not isinstance(row, Experiment) or row.kind not in CLASSES or row.seeds < 0:
        raise InputError(
            f"{of} is no Experiment of a known class",
            remedy=f"make one (docs/extend.md) with a class of {', '.join(CLASSES)}",
        )
    if row.name != point.name or row.name in ours:
        raise InputError(f"{of} is called {row.name!r}", remedy="use one name of its own")

    def run(seeds: Sequence[int]) -> Outcome:
        try:
            found = row.run(seeds)
        except ValueError as error:  # as draws that do not pair
            raise InputError(f"{of}: {error}", remedy="correct the claim") from error
        if not isinstance(found, Outcome) or not all(isinstance(c, Claim) for c in found.claims):
            raise InputError(f"{of} gives no Outcome with claims", remedy="see docs/extend.md")
        return found

    return replace(row, run=run)


def experiment(name: str) -> Experiment:
    """The experiment of a name. Raises `InputError` with all names."""
    known = experiments() | peer_studies() | outside_rows()
    if name not in known:
        raise InputError(
            f"no experiment is called {name!r}", remedy=f"use one of {', '.join(known)}"
        )
    return known[name]


def touched(name: str, says: str) -> bool:
    """Whether what qualifies the verdict of a row is about this claim, too."""
    return bool(re.search(_records().get(name, {}).get("touches", ""), says))


def verdict_before(name: str) -> str:
    """The short verdict of a row before the review of 27 November 2026; empty where that did not
    change it."""
    return str(_records().get(name, {}).get("before", ""))


@cache
def _records() -> dict[str, dict[str, Any]]:
    return tomllib.loads(FILE.read_text())


def _rows_of(package: str) -> dict[str, Experiment]:
    known = dict(_functions(package))
    numbered = sorted(known, key=lambda name: [part.zfill(4) for part in re.split(r"(\d+)", name)])
    return {name: _experiment(name, known[name]) for name in numbered}


def _functions(package: str) -> Iterator[tuple[str, Callable[[Sequence[int]], Outcome]]]:
    names = {name.replace("-", "_"): name for name in _records()}
    for module in iter_modules(import_module(package).__path__):
        of = vars(import_module(f"{package}.{module.name}"))
        for name in names.keys() & of.keys():
            if getattr(of[name], "__module__", "").endswith(f".{module.name}"):
                yield names[name], of[name]


def _experiment(name: str, function: Callable[[Sequence[int]], Outcome]) -> Experiment:
    row = _records()[name]
    said = [all_quotes().get(each, {}) for each in row.get("quotes", [name])]
    quoted = "; ".join(quote.cell() for some in said for quote in some.values())

    def run(seeds: Sequence[int]) -> Outcome:
        found = function(seeds)
        known = {**function.__globals__, "n": len(seeds), **found.words}
        how, because, qualified = (
            _filled(row.get(key, ""), known) for key in ("how", "because", "qualified")
        )
        return replace(
            found,
            how=how,
            because=because,
            qualified=found.qualified or qualified,
            size=tuple(row.get("size", found.size)),
        )

    published = row.get("published") or quoted
    return Experiment(name, row["where"], row["class"], published, row["seeds"], run)


def _filled(text: str, known: Mapping[str, Any]) -> str:
    """A text of a row: `{NAME}` is a name of its module or a word of its outcome, `{n}` the number
    of seeds, and `{shared.NAME}` a text that rows share."""
    for name, shared in _records()["shared"].items():
        text = text.replace(f"{{shared.{name}}}", shared)
    return " ".join(text.split()).format_map(known)
