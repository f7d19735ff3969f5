"""The contents of an experiment's module, and the list of all experiments."""

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
    """The result of one run."""

    ours: dict[str, Any]
    """Our numbers, for JSON."""
    verdict: str
    """One line: `reproduced`, `same shape` or `not`, and why."""
    table: str = ""
    """Our numbers beside the published ones, as text."""
    picture: Path | None = None


class Experiment(Protocol):
    """A module that reproduces a table or figure."""

    NAME: str
    """Its name on the command line, such as `routing-keys-fig4`."""
    WHERE: str
    """The paper and the figure."""
    CLASS: str
    """A key of `CLASSES`."""
    PUBLISHED: str
    """One line on the result in the paper."""
    SEEDS: int
    """The default number of seeds; 0 where nothing is random."""

    def run(self, seeds: Sequence[int], out: Path) -> ExperimentResult:
        """Runs the experiment; writes pictures to the existing folder `out`."""


def experiments() -> dict[str, Experiment]:
    """The papers' tables and figures by name; Fig. 9 comes before Fig. 10."""
    return _in_package(__name__.rpartition(".")[0])


def peer_studies() -> dict[str, Experiment]:
    """Studies of published methods beside ours, by name."""
    return _in_package("sar_lab.research.peers")


def _in_package(package: str) -> dict[str, Experiment]:
    modules = {}
    for module in iter_modules(import_module(package).__path__):
        here = import_module(f"{package}.{module.name}")
        if hasattr(here, "NAME"):
            modules[here.NAME] = cast(Experiment, here)
    numbered = sorted(
        modules, key=lambda name: [part.zfill(4) for part in re.split(r"(\d+)", name)]
    )
    return {name: modules[name] for name in numbered}


def experiment(name: str) -> Experiment:
    """The experiment of a name. Raises `InputError` with all names."""
    known = experiments() | peer_studies()
    if name not in known:
        raise InputError(
            f"no experiment is called {name!r}", remedy=f"use one of {', '.join(known)}"
        )
    return known[name]
