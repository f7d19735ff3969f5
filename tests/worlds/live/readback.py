"""The tables in the fabric, read with tools that are not ours."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sar_agent.formats.routes_file import RoutesFile
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.opensm import read_lids as lids
from sar_lab.live.process import wait_until

if TYPE_CHECKING:
    from tests.worlds.live.site import Site

_SWITCH = re.compile(r"^Unicast lids .*? guid (0x[0-9a-f]+)")
_ENTRY = re.compile(r"^(0x[0-9a-f]{4}) (\d{3}) ")

__all__ = ["installed", "lids", "wanted"]
Tables = dict[tuple[int, int], int]


def installed(fabric: Ibsim, host: str = "n002") -> Tables:
    """(switch GUID, LID) → egress port, from dump_fts, which asks every switch.

    On a busy machine an answer may be late. Then dump_fts says so and goes on with what it has, so
    it is asked again."""

    def asked() -> bool:
        nonlocal run
        run = fabric.run("dump_fts", host=host)
        assert run.returncode == 0, run.stderr
        return not run.stderr

    run = subprocess.CompletedProcess[str]([], 1)
    assert wait_until(asked, 15, 0.2), run.stderr
    tables: Tables = {}
    switch = 0
    for line in run.stdout.splitlines():
        if match := _SWITCH.match(line):
            switch = int(match[1], 16)
        elif match := _ENTRY.match(line):
            tables[switch, int(match[1], 16)] = int(match[2])
    return tables


def wanted(routes: RoutesFile, lid_of: dict[int, range]) -> Tables:
    """The same from a routes file; LIDs beyond its offsets repeat offset 0."""
    return {(switch, lid): port for switch, lid, port in _entries(routes, lid_of)}


def _entries(routes: RoutesFile, lid_of: dict[int, range]) -> Iterator[tuple[int, int, int]]:
    destinations = [*routes.terminal_guids.tolist(), *routes.switch_guids.tolist()]
    offsets = len(routes.forwarding)
    for row, switch in enumerate(routes.switch_guids.tolist()):
        for column, guid in enumerate(destinations):
            for offset, lid in enumerate(lid_of[guid]):
                used = offset if offset < offsets else 0
                yield switch, lid, int(routes.forwarding[used, row, column])


def service_level(here: Site, source: str, target: str) -> int:
    lids = str(here.lid(source)), str(here.lid(target))
    text = here.tool("saquery", "PR", "--slid", lids[0], "--dlid", lids[1])
    found = re.search(r"sl\.+(0x[0-9a-f]+)", text)
    assert found, text
    return int(found[1], 16)
