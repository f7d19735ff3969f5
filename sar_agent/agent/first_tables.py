"""The tables that the agent's first install replaced: `before.sar` in the state folder.

What a site has gained is measured against them (`agent.baseline`). They are kept once: where the
state, a kept generation or the history tells of an earlier install, the tables in force are no
longer those from before.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from sar_agent.agent.current import Current
from sar_agent.agent.history import History
from sar_agent.agent.outcome import Result
from sar_agent.errors import InputError, SarError
from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import file_to_routes
from sar_agent.formats.routes_file import encode, read_routes_file
from sar_agent.install.amended import completed
from sar_agent.install.generations import Generations
from sar_agent.install.subnet_manager import InForce
from sar_agent.routing.routes import Routes
from sar_agent.util.owned_files import READABLE
from sar_agent.util.text_files import write_bytes

log = logging.getLogger(__name__)
NAME = "before.sar"


class FirstTables:
    """`before.sar` in a state folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / NAME

    def keep(self, current: Current, before: InForce, fabric: Fabric) -> None:
        """Before an install: keeps `before`, in force on `fabric`, where it is the first. A full
        disk is logged, and no reason to fail."""
        if current.state or before.status.ours or not before.confirmed or self._installed():
            return
        file = replace(before.file, engine=before.status.engine, fabric_digest=fabric.digest)
        try:
            write_bytes(self.path, encode(file, self.path), READABLE)
        except SarError as error:
            log.warning("the tables before the first install are not kept: %s", error)

    def read(self, fabric: Fabric) -> Routes | None:
        """On the indices of `fabric`; None where none are kept, or they are of another fabric."""
        with suppress(InputError):
            file = read_routes_file(self.path)
            if file.fabric_digest == fabric.digest:
                return completed(fabric, file_to_routes(fabric, file))
        return None

    def _installed(self) -> bool:
        """Whether something tells of an earlier install."""
        if Generations(self.folder).numbers():
            return True
        try:
            return bool(History(self.folder).select("WHERE result = ? LIMIT 1", Result.INSTALLED))
        except SarError:  # it cannot be read: what is in force may be anything
            return True
