"""Engines `opensm-minhop`, `-updn`, `-ftree`, `-dfsssp`: tables of a real OpenSM.

Our minhop makes the same tables. Our other engines of these names follow OpenSM's in their paths,
but not in ties: among ports used equally OpenSM takes the lowest, ours the one to the switch that
fewest routes pass. That balances better, so a comparison with "Up*/Down*" or "DFSSSP" must not take
ours. These engines return the tables
that OpenSM 3.3.23 had installed on a simulated fabric (ibsim). They are recorded, because a run
takes a minute and needs OpenSM: `python -m tests.bench.record_opensm` writes them again, and
`tests/live/test_opensm_tables.py` compares some of them with OpenSM's.

`updn` and `ftree` get the switches of the top level as roots (`root_guid_file`), as sites configure
them: left to itself, OpenSM refuses the stand-in of Taurus as a fat tree and takes min-hop instead,
and its updn does not connect all of its leaves. Lanes that DFSSSP assigns are not
recorded, since no measure in the lab depends on them; on the recorded fabrics it needs one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8
from sar_agent.jobs import JobMix
from sar_agent.routing import Engine, Options, Routes, load_engine
from sar_agent.routing.routes import NO_ROUTE

PREFIX = "opensm-"
FOLDER = Path(__file__).parent / "tables"


class RecordedTables(Engine):
    """One of OpenSM's engines on the fabrics for which it was recorded."""

    def __init__(self, engine: str) -> None:
        self.engine, self.name = engine, PREFIX + engine
        self.summary = f"OpenSM's own {engine}, recorded"

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Raises `Unserved` for a fabric without a record."""
        path = recorded_path(fabric, self.engine)
        if not path.exists():
            raise Unserved(
                f"{fabric.name}: no tables of OpenSM's {self.engine} are recorded; "
                "`python -m tests.bench.record_opensm SPEC` records them"
            )
        # updn and ftree leave out routes from one spine to another or to hosts that it only reaches
        # by going up again. No host's path passes there: these entries, and those of the switches'
        # own LIDs, are our min-hop's, and no measure depends on them.
        egress = load_engine("minhop").route(fabric, JobMix(()), options).egress.copy()
        with np.load(path) as kept:
            hosts, theirs = egress[0, : fabric.terminals], kept["egress"]
            hosts[theirs != NO_ROUTE] = theirs[theirs != NO_ROUTE]
        return Routes(self.name, fabric.digest, egress)


def lab_engine(name: str) -> Engine:
    """An engine of sar-agent, or a recorded one. Raises `InputError` for an unknown name."""
    return (
        RecordedTables(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else load_engine(name)
    )


def recorded_path(fabric: Fabric, engine: str) -> Path:
    """Where the record of an engine on a fabric is, or would be."""
    return FOLDER / f"{fabric.digest.hex()[:16]}.{engine}.npz"


def record(fabric: Fabric, engine: str, egress: U8, used: str) -> Path:
    """Keeps uint8[T, S], the tables of hosts; `used` is the engine that OpenSM really took."""
    path = recorded_path(fabric, engine)
    np.savez_compressed(path, egress=egress[: fabric.terminals], used=np.array(used))
    return path
