"""Traffic hints of users: the forms of `traffic.txt`, in Slurm's option or in a job's comment.

The SPANK plugin refuses other hints when a job is submitted. Comments are not checked there, so
code that reads one calls `is_traffic` first. Both use one table, so that they cannot diverge.
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
    """A form of hints, `stencil2d:AxB`, and its meaning in words."""

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
    """The forms of the table, in its order."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = (line.partition("|") for line in lines if line and not line.startswith("#"))
    return tuple(Form(form.strip(), meaning.strip()) for form, _, meaning in rows)


def is_traffic(text: str) -> bool:
    """Whether `text` has a form of the table."""
    if len(text) > LONGEST:
        return False
    match = next((match for form in forms() if (match := form.match(text))), None)
    if match is None or not text.startswith("weight="):
        return match is not None
    return LEAST_WEIGHT <= float(match[1]) <= MOST_WEIGHT
