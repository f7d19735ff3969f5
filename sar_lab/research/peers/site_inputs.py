"""Real fabrics and jobs for the studies that can use them: a folder that $SAR_DATA names.

Captured fabrics are its files `*.ibnetdiscover`. Jobs of CINECA's Leonardo are `leonardo-jobs.*`,
with `leonardo-node-switch-map.txt`. These files belong to others and are not part of the project.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_lab.history import JobHistory, read_history
from sar_lab.history.leonardo import leonardo_stand_in

WITHOUT = "Without real fabrics and jobs ($SAR_DATA)."


def site_folder() -> Path | None:
    """The folder, or None where $SAR_DATA is not set. Raises `InputError` where it is no folder."""
    name = os.environ.get("SAR_DATA")
    if not name:
        return None
    if not Path(name).is_dir():
        raise InputError(f"$SAR_DATA is {name!r}, no folder", remedy="unset it, or name a folder")
    return Path(name)


def captured_fabrics(folder: Path) -> Iterator[tuple[str, Fabric]]:
    """Name and fabric of each capture, by name."""
    for path in sorted(folder.glob("*.ibnetdiscover")):
        yield path.stem, load_fabric(str(path))


def leonardo(folder: Path) -> tuple[Fabric, JobHistory] | None:
    """The stand-in of the network, whose cables are made up, and the recorded jobs; None where the
    folder does not have both."""
    nodes, jobs = folder / "leonardo-node-switch-map.txt", sorted(folder.glob("leonardo-jobs*"))
    if not nodes.exists() or not jobs:
        return None
    return leonardo_stand_in(nodes), read_history(jobs[0])
