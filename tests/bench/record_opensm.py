"""Records OpenSM's tables for the lab: `python -m tests.bench.record_opensm [SPEC …]`.

Some minutes; needs OpenSM and ibsim. Writes `sar_lab/opensm_tables/tables`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from sar_agent.errors import Unavailable
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.fabric.tree import tree_levels
from sar_lab.opensm_tables import record
from tests.bench.opensm_engines import OpenSMTables, tables_of_opensm

SPECS = (
    *("xgft:2;12,8;1,8", "standin:taurus", "standin:tsubame"),
    *(f"xgft:2;36,18;1,{roots}" for roots in (36, 18, 12)),
)
ENGINES = ("minhop", "updn", "ftree", "dfsssp")


def tables(fabric: Fabric, engine: str) -> OpenSMTables:
    """updn and ftree get the switches of the top level as roots, as sites configure them: left to
    itself, OpenSM finds none in the stand-in of Taurus, so that its updn does not connect all
    leaves and its ftree gives up."""
    if engine not in ("updn", "ftree"):
        return tables_of_opensm(fabric, engine, sweeps=1)
    level = tree_levels(fabric)
    with tempfile.TemporaryDirectory(prefix="sar-roots-") as folder:
        roots = Path(folder) / "roots"
        guids = fabric.switch_guid[level == level.max()]
        roots.write_text("".join(f"0x{int(guid):016x}\n" for guid in guids))
        return tables_of_opensm(fabric, engine, sweeps=1, root_guid_file=str(roots))


def main(specs: list[str]) -> None:
    """Prints the file of each record, and where OpenSM took min-hop instead."""
    for spec in specs:
        fabric = load_fabric(spec)
        for engine in ENGINES:
            used = engine
            try:
                held = tables(fabric, engine)
            except Unavailable as refusal:
                if "minhop instead" not in str(refusal):
                    raise
                used = "minhop"
                held = tables(fabric, used)
            path = record(fabric, engine, held.routes.egress[0], used)
            print(f"{spec}, {engine}: {used}, {held.lanes} lanes, {path.name}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(SPECS))
