"""The tables that are in force, whoever made them, and what they are worth to the running jobs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sar_agent.check.reachability import check_reachability
from sar_agent.errors import CheckFailed, SarError
from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import file_to_routes
from sar_agent.formats.lfts_dump import read_lfts_dump
from sar_agent.formats.routes_file import RoutesFile, read_routes_file
from sar_agent.jobs import JobMix
from sar_agent.opensm.plugin_client import PluginClient, PluginStatus
from sar_agent.opensm.plugin_install import Timed
from sar_agent.quality import Measures, measure
from sar_agent.routing.routes import Routes


class TablesInForce:
    """From the plugin if it answers, else from OpenSM's dump file, else unknown. Read again only
    when something moved; `problem` says why there are none."""

    def __init__(self, bridge: PluginClient, lfts_dump: str) -> None:
        self.bridge = bridge
        self.lfts_dump = Path(lfts_dump) if lfts_dump else None
        self.problem = ""
        self.file: RoutesFile | None = None
        self._routes: Routes | None = None
        self._key: object = None

    def look(self, status: PluginStatus | None, fabric: Fabric) -> Routes | None:
        """On the indices of `fabric`."""
        key = (self._moved(status), fabric.digest)
        if key == self._key:
            if self._routes is None and self.file:
                self._routes = file_to_routes(fabric, self.file)
            return self._routes
        self.file, self._routes, self._key, self.problem = None, None, key, ""
        try:
            if status:
                self.file = read_routes_file(self.bridge.dump().path)
                self._routes = file_to_routes(fabric, self.file)
                if not status.generation_in_force:  # nobody has proved where their hosts may be
                    self._routes = replace(self._routes, senders=None)
            elif self.lfts_dump:
                self._routes = read_lfts_dump(self.lfts_dump, fabric)
            else:
                self.problem = "neither the plugin nor opensm.lfts_dump tells what is in force"
        except SarError as error:
            self.problem = f"what is in force is not known: {error}"
            self._key = None  # ask again
        return self._routes

    def took(self, file: RoutesFile, status: PluginStatus | None, fabric: Fabric) -> None:
        """What an install has just read back. On whose indices can wait until somebody looks, an
        application that asked for a key cannot."""
        self.file, self._routes, self.problem = file, None, ""
        self._key = (self._moved(status), fabric.digest)

    def _moved(self, status: PluginStatus | None) -> object:
        if status:
            return (status.pid, status.routings, status.lft_blocks_confirmed)
        try:
            stat = self.lfts_dump and self.lfts_dump.stat()
        except OSError:
            return None
        return stat and (stat.st_ino, stat.st_size, stat.st_mtime_ns)


class Worth:
    """Measures of one set of routes, computed again only when routes, jobs or fabric changed."""

    def __init__(self) -> None:
        self._key: object = None
        self._measures: Measures | None = None

    def of(self, fabric: Fabric, mix: JobMix, routes: Routes, timed: Timed) -> Measures:
        """Raises `CheckFailed` where a table does not lead everywhere: it cannot be walked."""
        key = (fabric.digest, mix.key, routes.digest)
        if key != self._key:
            reach = check_reachability(fabric, routes)
            if reach.unreachable_pairs:
                raise CheckFailed(f"{reach.unreachable_pairs} pairs do not reach; {reach.first}")
            with timed("measure"):
                self._measures, self._key = measure(fabric, mix, routes), key
        assert self._measures is not None
        return self._measures

    def known(self, fabric: Fabric, routes: Routes, measures: Measures, mix: JobMix) -> None:
        """Take over what a plan has measured already."""
        self._key, self._measures = (fabric.digest, mix.key, routes.digest), measures
