"""A folder of routes: what `route --out` writes and `measure` and `check` read.

It holds `routes.sar`, the very file that the plugin would load: there is one format, and the routes
that were measured are those that would be installed.
"""

from __future__ import annotations

from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import file_to_routes, routes_to_file
from sar_agent.formats.routes_file import read_routes_file, write_routes_file
from sar_agent.routing.routes import Routes

NAME = "routes.sar"


def write_routes_folder(folder: Path, fabric: Fabric, routes: Routes) -> None:
    """Writes the folder, which is created where it does not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    write_routes_file(folder / NAME, routes_to_file(fabric, routes, generation=1))


def routes_of_file(path: Path, fabric: Fabric) -> Routes:
    """The routes of one routes file on the indices of `fabric`. Raises `InputError`."""
    file = read_routes_file(path)
    shared = set(file.switch_guids.tolist()) & set(fabric.switch_guid.tolist())
    if not shared:
        raise InputError(
            f"these routes have none of the switches of {fabric.name}",
            file=path,
            remedy="give the fabric they were made for",
        )
    return file_to_routes(fabric, file)
