"""Reads `--routes`: a folder or file of ours, or a dump of OpenSM and its tools.

A folder that `route --out` wrote holds `routes.sar`. Any other folder is searched for OpenSM's
dumps under their usual names, and for our exports. The first line of a file tells its format.
"""

from __future__ import annotations

from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.formats.fdbs import read_fdbs
from sar_agent.formats.lane_files import with_lanes
from sar_agent.formats.lfts_dump import read_lfts_dump
from sar_agent.formats.routes_file import MAGIC, RoutesFile, read_routes_file
from sar_agent.formats.routes_folder import NAME, read_routes_folder, routes_of_file
from sar_agent.routing.routes import Routes
from sar_agent.util.text_files import read_text

DUMPS = ("opensm-lfts.dump", "lfts.dump", "opensm.fdbs", "osm.fdbs", "fdbs", "ibdiagnet2.fdbs")
KNOWN = (
    "give a folder of `sar-agent route --out`, OpenSM's opensm-lfts.dump or opensm.fdbs, or the "
    "output of dump_fts or ibroute"
)


def read_tables(path: Path, fabric: Fabric) -> Routes:
    """The routes on the indices of `fabric`, with lanes from `psl` and `slvl` beside a dump.

    Raises `InputError` with file and line for any other file, and for tables of another fabric.
    """
    if path.is_dir():
        if (path / NAME).exists():
            return read_routes_folder(path, fabric)
        dumps = [path / name for name in DUMPS if (path / name).exists()]
        if not dumps:
            raise InputError(f"no {NAME} and no dump of OpenSM's in it", file=path, remedy=KNOWN)
        path = dumps[0]
    if _starts(path).startswith(MAGIC):
        return routes_of_file(path, fabric)
    lines = (line.strip() for line in read_text(path).splitlines())
    head = next((line for line in lines if line and not line.startswith("#")), "")
    if head.startswith("Unicast lids"):
        routes = read_lfts_dump(path, fabric, strict=True)
    elif "Switch 0x" in head:
        routes = read_fdbs(path, fabric)
    else:
        raise InputError(
            f"{head[:60]!r} is not the beginning of forwarding tables",
            file=path,
            line=1,
            remedy=KNOWN,
        )
    return with_lanes(routes, fabric, path.parent / "psl", path.parent / "slvl")


def read_carried(path: Path) -> RoutesFile | None:
    """The routes file at `path`, or in that folder; None for other formats. Raises `InputError`
    where it is broken."""
    path = path / NAME if path.is_dir() else path
    return read_routes_file(path) if _starts(path).startswith(MAGIC) else None


def _starts(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC))
    except OSError:
        return b""  # `read_text` explains the error
