"""A folder of routes: what `route --out` writes and `measure` and `check` read.

It holds `routes.sar`, the very file the plugin would load, so there is one format and what was
measured is what would be installed.
"""

from __future__ import annotations

from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import file_to_routes, routes_to_file
from sar_agent.formats.routes_file import read_routes_file, write_routes_file
from sar_agent.routing.routes import Routes

NAME = "routes.sar"


def write_routes_folder(folder: Path, fabric: Fabric, routes: Routes, generation: int = 1) -> None:
    """Makes the folder where needed."""
    folder.mkdir(parents=True, exist_ok=True)
    write_routes_file(folder / NAME, routes_to_file(fabric, routes, generation))


def read_routes_folder(folder: Path, fabric: Fabric) -> Routes:
    """The routes on the indices of `fabric`; `InputError` where they are another fabric's."""
    return routes_of_file(folder / NAME, fabric)


def routes_of_file(path: Path, fabric: Fabric) -> Routes:
    """The same of one routes file."""
    file = read_routes_file(path)
    shared = set(file.switch_guids.tolist()) & set(fabric.switch_guid.tolist())
    if not shared:
        raise InputError(
            f"these routes know none of the switches of {fabric.name}",
            file=path,
            remedy="give the fabric they were made for",
        )
    return file_to_routes(fabric, file)
