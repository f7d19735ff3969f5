"""The list of all experiments."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from sar_agent.errors import InputError
from sar_lab.research.papers.outcome import Outcome

CLASSES = {
    "E": "the same numbers",
    "S": "over seeds, within the scatter",
    "Q": "the same order or shape",
    "N": "not without hardware or traces that nobody published",
}


@dataclass(frozen=True)
class Experiment:
    """A table or figure, which one module reproduces: its constants, and its function `run`."""

    name: str
    """Its name on the command line, such as `routing-keys-fig4`: that of the module."""
    where: str
    """`WHERE`: the paper and the figure."""
    kind: str
    """`CLASS`, a key of `CLASSES`."""
    published: str
    """What the paper prints: the quotes of the row (`SAID`), or one line on a study of ours
    (`PUBLISHED`)."""
    seeds: int
    """`SEEDS`: the default number of seeds; 0 where nothing is random."""
    run: Callable[[Sequence[int]], Outcome]


def experiments() -> dict[str, Experiment]:
    """The papers' tables and figures by name; Fig. 9 comes before Fig. 10."""
    return _in_package(__name__.rpartition(".")[0])


def peer_studies() -> dict[str, Experiment]:
    """Studies of published methods beside ours, by name."""
    return _in_package("sar_lab.research.peers")


def _in_package(package: str) -> dict[str, Experiment]:
    found = {}
    for module in iter_modules(import_module(package).__path__):
        here = import_module(f"{package}.{module.name}")
        if hasattr(here, "WHERE"):
            name = module.name.replace("_", "-")
            said = getattr(here, "PUBLISHED", "") or "; ".join(q.cell() for q in here.SAID.values())
            found[name] = Experiment(name, here.WHERE, here.CLASS, said, here.SEEDS, here.run)
    numbered = sorted(found, key=lambda name: [part.zfill(4) for part in re.split(r"(\d+)", name)])
    return {name: found[name] for name in numbered}


def experiment(name: str) -> Experiment:
    """The experiment of a name. Raises `InputError` with all names."""
    known = experiments() | peer_studies()
    if name not in known:
        raise InputError(
            f"no experiment is called {name!r}", remedy=f"use one of {', '.join(known)}"
        )
    return known[name]
