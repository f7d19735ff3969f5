"""What the papers print (`published.toml`): the quotes to which the claims of a row point."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("published.toml")
PRINTED, READ_OFF, ERRATUM, DERIVED = "printed", "read off", "erratum", "derived"
THEIRS = (PRINTED, READ_OFF, ERRATUM)
"""Kinds of claims that are the paper's; the others are tests of ours."""
PAPERS = {
    "oblivious": "oblivious-xgft-2009",
    "pftree": "pftree-2016",
    "routing-keys": "routing-keys-2017",
    "sar": "sar-2016",
}


@dataclass(frozen=True)
class Quote:
    """Words of a paper."""

    name: str
    """`row.name`, as in the file."""
    words: str
    place: str = ""
    kind: str = PRINTED
    given: float | None = None
    """The number where it is not written as a figure, or is not the printed one."""
    why: str = ""
    source: str = ""
    """The publication, where it is not one of the four papers."""

    @property
    def paper(self) -> str:
        return self.source or next(
            paper for row, paper in PAPERS.items() if self.name.startswith(f"{row}-")
        )

    @property
    def numbers(self) -> list[float]:
        """The numbers in the words, or the given one."""
        if self.given is not None:
            return [self.given]
        return [float(n.replace(",", "")) for n in re.findall(r"-?\d[\d,]*(?:\.\d+)?", self.words)]

    @property
    def number(self) -> float:
        return self.numbers[0]

    def cell(self) -> str:
        """As a line of the page has it."""
        where = ", ".join(
            part for part in (self.kind, self.source or (self.place and f"in {self.place}")) if part
        )
        return f"“{self.words}” ({where}{f': {self.why}' if self.why else ''})"


@cache
def all_quotes() -> Mapping[str, Mapping[str, Quote]]:
    """Row → name → quote."""
    rows = tomllib.loads(FILE.read_text())
    return {
        row: {
            name: Quote(
                f"{row}.{name}", each["quote"], each.get("place", ""), each.get("kind", PRINTED),
                each.get("number"), each.get("why", ""), each.get("source", ""),
            )
            for name, each in some.items()
        }
        for row, some in rows.items()
    }  # fmt: skip


def quotes(row: str) -> Mapping[str, Quote]:
    """The quotes of a row."""
    return all_quotes()[row]
