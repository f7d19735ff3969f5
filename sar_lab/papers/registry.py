"""What a module of this folder has to have, and where they are found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Protocol, cast

from sar_agent.errors import InputError

CLASSES = {
    "E": "the same numbers",
    "S": "over seeds, within the scatter",
    "Q": "the same order or shape",
    "N": "not without hardware or traces that nobody published",
}


@dataclass(frozen=True)
class ExperimentResult:
    """Of one run."""

    ours: dict[str, Any]
    """What was found, for JSON."""
    verdict: str
    """One line: `reproduced`, `same shape` or `not`, and why."""
    table: str = ""
    """The same for people, with what was published beside it."""
    picture: Path | None = None


class Experiment(Protocol):
    """A table or figure."""

    NAME: str
    """What users type, e.g. `routing-keys-fig4`."""
    WHERE: str
    """Paper and figure."""
    CLASS: str
    """A key of `CLASSES`."""
    PUBLISHED: str
    """What the paper shows, in a line."""
    SEEDS: int
    """How many a run takes unless told otherwise; 0: nothing is drawn."""

    def run(self, seeds: Sequence[int], out: Path) -> ExperimentResult:
        """Writes pictures to the folder `out`, which is there."""


def experiments() -> dict[str, Experiment]:
    """All there are, by name; Fig. 9 before Fig. 10."""
    package = __name__.rpartition(".")[0]
    found = {}
    for module in iter_modules(import_module(package).__path__):
        here = import_module(f"{package}.{module.name}")
        if hasattr(here, "NAME"):
            found[here.NAME] = cast(Experiment, here)
    numbered = sorted(found, key=lambda name: [part.zfill(4) for part in re.split(r"(\d+)", name)])
    return {name: found[name] for name in numbered}


def experiment(name: str) -> Experiment:
    """Raises `InputError`, naming those there are."""
    known = experiments()
    if name not in known:
        raise InputError(
            f"no experiment is called {name!r}", remedy=f"there are {', '.join(known)}"
        )
    return known[name]
