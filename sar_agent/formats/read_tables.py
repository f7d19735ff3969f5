"""Reads `--routes`: a folder or file of ours, or a dump of OpenSM and its tools.

A folder that `route --out` wrote holds `routes.sar`. Any other folder is searched for OpenSM's
dumps under their usual names, and for our exports. The first line of a file tells its format.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.formats.fdbs import HEADINGS, read_fdbs
from sar_agent.formats.lane_files import with_lanes
from sar_agent.formats.lfts_dump import read_lfts_dump
from sar_agent.formats.routes_file import MAGIC, RoutesFile, read_routes_file
from sar_agent.formats.routes_folder import NAME, routes_of_file
from sar_agent.routing.routes import Routes
from sar_agent.util.other_files import other_file
from sar_agent.util.text_files import first_readable, read_text

DUMPS = (
    "opensm-lfts.dump", "lfts.dump", "opensm.fdbs", "osm.fdbs", "fdbs", "ibdiagnet2.fdbs",
    "ibdiagnet2.far",
)  # fmt: skip
KNOWN = (
    "give a folder of `sar-agent route --out`, OpenSM's opensm-lfts.dump or opensm.fdbs, "
    "ibdiagnet2.fdbs or ibdiagnet2.far, or the output of dump_fts or ibroute"
)


def read_tables(path: Path, fabric: Fabric, say: Callable[[str], None] | None = None) -> Routes:
    """The routes on the indices of `fabric`, with lanes from `psl` and `slvl` beside a dump; of a
    folder without routes of ours, those of the first dump that can be read. `say` is told what was
    left out.

    Raises `InputError` with file and line for any other file, and for tables of another fabric.
    """
    say = say or (lambda note: None)
    if not path.is_dir():
        return _of_file(path, fabric, say)
    if (path / NAME).exists():
        return routes_of_file(path / NAME, fabric)
    found = first_readable(path, DUMPS, lambda file: _of_file(file, fabric, say))
    if found is None:
        raise InputError(f"no {NAME} and no dump of OpenSM's in it", file=path, remedy=KNOWN)
    routes, notes = found
    for note in notes:
        say(f"{path}: {note}")
    return routes


def _of_file(path: Path, fabric: Fabric, say: Callable[[str], None]) -> Routes:
    if _starts(path).startswith(MAGIC):
        return routes_of_file(path, fabric)
    lines = (line.strip() for line in read_text(path).splitlines())
    head = next((line for line in lines if line and not line.startswith(HEADINGS)), "")
    if head.startswith("Unicast lids"):
        routes = read_lfts_dump(path, fabric, strict=True, say=say)
    elif "Switch 0x" in head:
        routes = read_fdbs(path, fabric, say)
    elif what := other_file(read_text(path)):
        raise InputError(f"this is {what}, not forwarding tables", file=path, remedy=KNOWN)
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
