"""Where no tables were given: those that the site's OpenSM would make, for everything that says
"before".

OpenSM routes with min-hop unless it is told otherwise, and our `minhop` makes the same tables. A
site with a fat tree usually configures ftree, which refuses many real ones, and then OpenSM takes
min-hop instead. Only OpenSM knows what its ftree refuses: the engine `opensm-ftree` of sar-lab asks
it on a simulation. It depends on the fabric alone, so all commands assume the same tables.

Weak spot: a site that keeps the default on a tree which ftree accepts has min-hop's tables. These
are worse, so that what is promised to it is too little.
"""

from __future__ import annotations

from typing import NamedTuple

from sar_agent.errors import SarError, Unserved
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.routing.engine import Options, engine_names, load_engine

DEFAULT, ASKED = "minhop", "opensm-ftree"


class Assumed(NamedTuple):
    """An engine, and in words why it is the one of which tables are assumed."""

    engine: str
    why: str


def assumed_engine(fabric: Fabric) -> Assumed:
    """`opensm-ftree` where OpenSM's ftree was asked and serves the fabric, else `minhop`."""
    if ASKED not in engine_names():
        return Assumed(DEFAULT, f"{_UNKNOWN} (sar-lab is not installed)")
    try:
        load_engine(ASKED).route(fabric, JobMix(()), Options())
    except Unserved:
        return Assumed(DEFAULT, "OpenSM's ftree refuses this fabric, and OpenSM then takes minhop")
    except SarError as error:
        return Assumed(DEFAULT, f"{_UNKNOWN} ({error})")
    return Assumed(ASKED, "OpenSM's ftree serves this fabric, so OpenSM itself made them")


_UNKNOWN = "OpenSM's default; it is not known whether its ftree serves this fabric"
