"""A site in a folder: a fat tree under ibsim, a stock OpenSM with the plugin, a client."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sar_agent.errors import Unavailable
from sar_agent.formats.routes_file import RoutesFile, read_routes_file, write_routes_file
from sar_agent.opensm.plugin_client import AT_REST, LoadAnswer, PluginClient, PluginStatus
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import wait_for
from tests.worlds.live import readback
from tests.worlds.live.built import ROOT, built
from tests.worlds.live.fat_tree import FatTree
from tests.worlds.live.ring import Ring


def plugin(target: str = "libsarbridge.so") -> Path:
    """The plugin, built by its own Makefile."""
    return built("opensm_bridge", target)


def is_primed(status: PluginStatus) -> bool:
    """Whether OpenSM's first sweep is over, and the one that the plugin asks for after it."""
    return status.heavy_sweeps >= 2 and status.state in AT_REST


@dataclass
class Site:
    tree: Any  # FatTree or Ring
    fabric: Ibsim
    sm: OpenSM
    bridge: PluginClient

    def load(self, routes: RoutesFile) -> LoadAnswer:
        """By the plugin's `load`; afterwards the file is the routes file, as the agent does it."""
        write_routes_file(self.sm.next_path, routes)
        loaded = self.bridge.load(routes.generation, None)
        self.sm.next_path.replace(self.sm.routes_path)
        return loaded

    def wait(self, holds: Callable[[PluginStatus], bool], seconds: float = 15) -> PluginStatus:
        """Poll the status until it is as expected; the error shows the last one."""
        last = self.bridge.status()

        def check() -> bool:
            nonlocal last
            last = self.bridge.status()
            return holds(last)

        try:
            wait_for(check, seconds, "status")
        except Unavailable as error:
            raise AssertionError(f"{error}; the last status: {last}") from error
        return last

    def wait_primed(self) -> PluginStatus:
        """The first sweep, and the one that the plugin asks for after it, are over."""
        return self.wait(lambda s: is_primed(s) and s.routings >= 2)

    def lids(self) -> dict[int, range]:
        return readback.lids(self.sm.folder / "cache")

    def lid(self, name: str) -> int:
        """A node's base LID."""
        return self.lids()[(self.tree.terminals() | self.tree.switches())[name]].start

    def tool(self, *command: str, host: str = "n002") -> str:
        run = self.fabric.run(*command, host=host)
        assert run.returncode == 0, (command, run.stdout, run.stderr)
        return run.stdout

    def dumped(self) -> RoutesFile:
        """What is in force, by the plugin's own account."""
        return read_routes_file(self.bridge.dump().path)

    def assert_in_force(self, routes: RoutesFile) -> None:
        """Every (switch, LID) holds what the file says, by dump_fts and by the plugin's dump."""
        lids = self.lids()
        wanted = readback.wanted(routes, lids)
        installed = readback.installed(self.fabric)
        assert installed == wanted
        assert readback.wanted(self.dumped(), lids) == wanted

    def join_broadcast(self, host: str) -> None:
        """Make a host a member of IPoIB's broadcast group."""
        guid, sm = self.tree.terminals()[host], self.lid("n001")
        subprocess.run(
            [sys.executable, "-m", "tests.worlds.live.join", hex(guid), str(sm)],
            env=self.fabric.env(host) | {"PYTHONPATH": str(ROOT)},
            cwd=self.fabric.scratch,
            check=True,
            timeout=120,
        )

    def multicast(self) -> dict[str, frozenset[int]]:
        """Switch → egress ports of the broadcast group, by ibroute."""
        ports = {}
        for name in self.tree.switches():
            text = self.tool("ibroute", "-M", str(self.lid(name)))
            marks = re.search(r"^0xc000 {6}(.*)$", text, re.MULTILINE)  # port 0's column next
            columns = enumerate(marks[1][::2] if marks else "")
            ports[name] = frozenset(port for port, mark in columns if mark == "x")
        return ports


@contextlib.contextmanager
def site(tree: FatTree | Ring | None = None, **opensm: Any) -> Iterator[Site]:
    """`opensm` are arguments of OpenSM; the SM runs on n001 and has finished its first sweeps."""
    tree = tree or FatTree()
    opensm.setdefault("plugin", plugin())
    with Ibsim(tree.net()) as fabric, OpenSM(fabric, host="n001", **opensm) as sm:
        sm.wait_up()
        here = Site(tree, fabric, sm, PluginClient(sm.socket_path))
        if opensm["plugin"] is not None:
            here.wait_primed()
        yield here
