"""Which engine made the tables that were given, and the same dumps with tables of one engine.

What a failure changes can be seen only between tables of one engine: the tables of another differ
from those in force by more than the failure.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

import numpy as np

from sar_agent.errors import InputError, SarError
from sar_agent.reports.site_dumps import SiteDumps
from sar_agent.routing import Options, load_engine
from sar_agent.routing.engine import Engine
from sar_agent.routing.lanes import routed
from sar_agent.routing.routes import Routes

OPENSM = ("minhop", "updn", "ftree", "dfsssp")
"""Engines of OpenSM; a dump of its tables does not say which of them made it."""


def maker_of(dumps: SiteDumps, among: Iterable[str] = OPENSM) -> str:
    """The engine that the tables name, where it is one of ours; else that of OpenSM's engines whose
    tables on this fabric have most entries in common with them; `minhop` where all refuse it."""
    with suppress(InputError):
        return load_engine(dumps.routes.engine).name
    least, maker = np.inf, "minhop"
    for name in among:
        try:
            share = _differing(dumps, _routed(dumps, load_engine(name)))
        except SarError:
            continue
        if share < least:
            least, maker = share, name
    return maker


def of_engine(dumps: SiteDumps, engine: Engine) -> tuple[SiteDumps, str]:
    """The dumps as they are, and "", where the engine makes these tables; else with those that it
    makes on the fabric as it is, and a sentence that says so. Raises `SarError` where the engine
    does not serve the fabric."""
    made = _routed(dumps, engine)
    share = _differing(dumps, made)
    if not share:
        return dumps, ""
    return replace(dumps, routes=made), (
        f"the tables that were given are not those of {engine.name} on this fabric with these jobs "
        f"({max(share, 0.001):.1%} of the entries differ): before and after are both of "
        f"{engine.name}"
    )


def _routed(dumps: SiteDumps, engine: Engine) -> Routes:
    return routed(engine, dumps.fabric, dumps.mix, Options())


def _differing(dumps: SiteDumps, routes: Routes) -> float:
    """The share of entries to live host ports, in live switches, that are not those given."""
    live = np.ix_(dumps.fabric.terminal_up, dumps.fabric.switch_up)
    hosts = slice(dumps.fabric.terminals)
    return float((routes.egress[0, hosts] != dumps.routes.egress[0, hosts])[live].mean())
