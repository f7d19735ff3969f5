"""Plans and random failures for the plugin's repair."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.routes_file import NO_SWITCH, RoutesFile, decode, encode
from sar_agent.routing import Options, load_engine
from tests.worlds.certificates import numbered


@dataclass
class Failure:
    """What the live fabric lacks, in rows of the file."""

    cables: set[tuple[int, int]] = field(default_factory=set)  # either end
    switches: set[int] = field(default_factory=set)

    def commands(self) -> str:
        lines = [f"cable {s} {p}" for s, p in sorted(self.cables)]
        return "\n".join([*lines, *(f"switch {s}" for s in sorted(self.switches)), "go\n"])


def plan_of(spec: str, engine: str, seed: int = 0) -> RoutesFile | None:
    """A numbered file, as the plugin gets it; None where the paths close a credit loop."""
    fabric = load_fabric(spec)
    routes = load_engine(engine).route(fabric, synthetic_mix(fabric, seed), Options())
    file = decode(encode(routes_to_file(fabric, routes, 1)))
    # Unknown hosts may need what the known ones leave free.
    return numbered(file) or numbered(replace(file, senders=np.zeros_like(file.senders)))


def failures(file: RoutesFile, rng: np.random.Generator, kind: str) -> Failure:
    """One random failure; a cable is named by one end."""
    ends = np.argwhere(file.far_ends != NO_SWITCH)
    if kind in ("cable", "few", "many"):
        count = {"cable": 1, "few": 3, "many": max(2, len(ends) // 40)}[kind]
        drawn = rng.choice(len(ends), min(count, len(ends)), replace=False)
        return Failure(cables={(int(s), int(p)) for s, p in ends[drawn]})
    bears = np.zeros(len(file.switch_guids), np.bool_)
    bears[file.terminal_leaf] = True
    wanted = np.flatnonzero(~bears if kind == "spine" and not bears.all() else bears)
    return Failure(switches={int(rng.choice(wanted))})
