"""OpenSM with our plugin, as the agent's subnet manager.

The identity of tables is the generation number of their routes file: the plugin loads files, and a
file is written once. `routes.sar` is what a restarted OpenSM begins with; `routes.next` is an
install that is not confirmed yet (`plugin_install.py`). Without the plugin an agent that only
observes can read the tables from a dump (`opensm.lfts_dump`).
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Literal

from sar_agent.config.model import Config
from sar_agent.errors import SarError, Unavailable
from sar_agent.fabric import Fabric
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.opensm_file import OpensmFabric, read_opensm_fabric
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.read_tables import DUMPS, read_tables
from sar_agent.formats.routes_file import read_generation, read_routes_file
from sar_agent.install.changes import differences
from sar_agent.install.plan import Plan
from sar_agent.install.subnet_manager import InForce, SmStatus, SubnetManager
from sar_agent.opensm.plugin_client import PluginClient
from sar_agent.opensm.plugin_install import (
    finish_or_restore,
    next_path,
    put_in_force,
    read_in_force,
    read_now,
    sm_status,
)
from sar_agent.util.file_versions import version_of
from sar_agent.util.plural import plural


class PluginManager(SubnetManager):
    """`path` is `routes.sar`; `lfts_dump` is OpenSM's dump, for an agent without the plugin."""

    name = "OpenSM"
    calls = True

    def __init__(
        self,
        client: PluginClient,
        path: Path,
        mapper: HostMapper | None = None,
        lfts_dump: Path | None = None,
    ) -> None:
        self.client, self.path, self.lfts_dump = client, path, lfts_dump
        self._waiting = next_path(path)
        self.mapper = mapper or HostMapper()
        self._discovered: OpensmFabric | None = None
        """The fabric that was read last."""
        self._answers = True
        """Whether the plugin answered when it was last asked for its status."""
        self._generations: dict[Path, tuple[object, int]] = {}
        """Of routes files, with the version of the file."""
        self._status: tuple[object, SmStatus] | None = None
        """The last status, with what it was made of."""
        self._dumped: tuple[object, InForce] | None = None
        """The tables of `lfts_dump`, with the file's version and the fabric's digest."""

    def status(self) -> SmStatus:
        """Raises `SarError` where the plugin does not answer."""
        self._answers = False
        self._require_socket()  # the client would try four times
        status = self.client.status()
        self._answers = True
        kept, waiting = map(self._generation, (self.path, self._waiting))
        made_of = status, kept, waiting
        if self._status is None or self._status[0] != made_of:
            made = sm_status(status, kept or 0, waiting or 0, waiting is not None)
            self._status = made_of, made
        return self._status[1]

    def _generation(self, path: Path) -> int | None:
        """Of the routes file; 0 where it is broken, None where there is none."""
        if (version := version_of(path)) is None:
            return None
        if (known := self._generations.get(path)) and known[0] == version:
            return known[1]
        with suppress(SarError):
            self._generations[path] = version, (number := read_generation(path))
            return number
        return 0

    def _require_socket(self) -> None:
        if not self.client.socket_path.exists():
            raise Unavailable(
                f"{self.client.socket_path}: OpenSM's plugin is not there (no such socket)"
            )

    def fabric(self) -> Fabric:
        """The subnet as OpenSM discovered it: while nothing changes, each reading returns the same
        object and costs only OpenSM's copy."""
        answer = self.client.fabric()
        if self._discovered is None or self._discovered.digest != answer.digest:
            self._discovered = read_opensm_fabric(answer.path, self.mapper)
        return self._discovered.fabric

    def routes_in_force(self, fabric: Fabric, *, wait: bool = True) -> InForce:
        """From the plugin's dump; without `wait` and plugin, from OpenSM's own dump."""
        if wait:
            return read_in_force(self.client, fabric)
        if self._answers:
            return read_now(self.client, fabric)[0]
        if self.lfts_dump is None:
            raise Unavailable("neither the plugin nor opensm.lfts_dump tells what is in force")
        stat = version_of(self.lfts_dump, DUMPS)
        version = stat, fabric.digest
        if self._dumped is None or self._dumped[0] != version:
            routes = read_tables(self.lfts_dump, fabric)
            at = stat.written_at if stat else 0.0
            status = SmStatus(
                engine="unknown",
                unsettled="the plugin does not answer",
                built_at=at,
                dump=str(self.lfts_dump),
            )
            file, digest = routes_to_file(fabric, routes, 0), routes.digest.hex()
            self._dumped = version, InForce(routes, None, digest, file, status, confirmed=False)
        return self._dumped[1]

    def install(self, plan: Plan, proved_from: str | None) -> InForce:
        """By the plugin; `routes.sar` is the plan's afterwards."""
        return put_in_force(self.client, plan, self.path, proved_from)

    def wait_for_call(self, answered: int) -> int:
        """For half a minute at most."""
        self._require_socket()
        return self.client.await_call(answered)

    def decline_call(self, call: int) -> None:
        """The next engine then routes."""
        self.client.decline(call)

    def recover(self) -> str:
        """`routes.next` becomes `routes.sar`, or is removed."""
        return finish_or_restore(self.client, self.path)

    def confirm_restart(self, generation: int, *, compare: bool) -> None:
        """`routes.sar` holds `generation`, and with `compare` the entries in force."""
        if (kept := read_generation(self.path)) != generation:
            raise SarError(f"generation {generation} is in force, {self.path} holds {kept}")
        if compare:
            found = read_routes_file(self.client.dump().path)
            wrong = differences(read_routes_file(self.path), found)
            if wrong or found.had is not None:
                raise SarError(
                    f"what is in force differs from {self.path} in "
                    + plural(wrong, "entry", "entries")
                )

    def notice(self, kind: Literal["unpath", "repath"], update: int, generation: int) -> None:
        """Trap 68 or 69, from the subnet administrator."""
        self.client.notice(kind, update, generation)


def plugin_manager(config: Config) -> PluginManager:
    """The subnet manager `plugin`, as configured."""
    opensm = config.opensm
    return PluginManager(
        PluginClient(opensm.plugin_socket, opensm.load_deadline_seconds),
        config.agent.routes_path,
        config.fabric.mapper,
        Path(opensm.lfts_dump) if opensm.lfts_dump else None,
    )
