"""What users say of their job's traffic: forms of `traffic.txt`, in Slurm's option or a comment.

The SPANK plugin refuses what is not in the table when a job is submitted; a comment nobody checks,
so whoever reads one asks `is_traffic` first. One table for both, lest they drift apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sar_agent.jobs.record import LEAST_WEIGHT, MOST_WEIGHT

TABLE = Path(__file__).with_name("traffic.txt")
LONGEST = 63
"""Characters that a hint may have; Slurm carries it through environments."""


@dataclass(frozen=True, slots=True)
class Form:
    """`stencil2d:AxB` and what it means, for people."""

    form: str
    meaning: str

    def match(self, text: str) -> re.Match[str] | None:
        """The values of the form's places as groups, or None if `text` is not of this form."""
        pieces = (_PLACES.get(c, _WHOLE) if c.isupper() else re.escape(c) for c in self.form)
        return re.fullmatch("".join(pieces), text)


_WHOLE = "([1-9][0-9]{0,5})"
_PLACES = {"W": r"([0-9]{1,6}(?:\.[0-9]{0,6})?|\.[0-9]{1,6})"}


@cache
def forms() -> tuple[Form, ...]:
    """The table, in its order."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = (line.partition("|") for line in lines if line and not line.startswith("#"))
    return tuple(Form(form.strip(), meaning.strip()) for form, _, meaning in rows)


def is_traffic(text: str) -> bool:
    """Whether `text` is of a form of the table."""
    if len(text) > LONGEST:
        return False
    found = next((match for form in forms() if (match := form.match(text))), None)
    if found is None or not text.startswith("weight="):
        return found is not None
    return LEAST_WEIGHT <= float(found[1]) <= MOST_WEIGHT
