"""OpenSM with one of its own engines on a simulated fabric.

Its time is from its log: from `building routing with '…'` to `… tables configured on all
switches`. This includes the routing step and the transfer of the tables to the sender, which
does not wait (some hundredths of a second at 1,728 hosts). dfsssp's includes the removal of
deadlocks."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from sar_agent.check import check_routes
from sar_agent.errors import Unavailable
from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import file_to_routes
from sar_agent.formats.routes_file import read_routes_file
from sar_agent.jobs import JobMix
from sar_agent.opensm.plugin_client import PluginClient
from sar_agent.routing import Options, Routes, load_engine
from sar_lab.live.generated import ibsim_for
from tests.bench.machine import peak_mb
from tests.bench.opensm_on_ibsim import started, wait_sweeps
from tests.bench.quality import Quality, quality_of
from tests.bench.timing import Times

_STAMP = r"^(\w+ \d+ [\d:]+ \d{6}) .*"
_BEGIN = _STAMP + r"ucast_mgr_route: building routing with '(\w+)'"
_STEP = re.compile(
    _BEGIN + r"(?s:.*?)(?m:" + _STAMP + r"osm_ucast_mgr_process: \2 tables configured)",
    re.MULTILINE,
)
_LANES = re.compile(r"anes needed: (\d+)")


class OpenSMTables(NamedTuple):
    """The tables that the switches confirmed to OpenSM, with time, lanes and memory."""

    seconds: list[float]
    """The seconds of each routing step."""
    lanes: int
    """The virtual lanes that OpenSM reports; engines that report none use one."""
    peak_mb: float
    routes: Routes


class OpenSMRun(NamedTuple):
    """The measurements of one of OpenSM's engines, for JSON."""

    failed: str = ""
    """The reason why there are no routes; then the rest is empty."""
    seconds: list[float] = []  # noqa: RUF012
    lanes: int = 1
    wrong: str = ""
    """The problem that our check finds in tables of one lane."""
    peak_mb: float = 0.0
    quality: Quality | None = None

    @property
    def times(self) -> Times:
        """The routing steps."""
        return Times(self.seconds)


def run_opensm(
    fabric: Fabric, mix: JobMix, engine: str, sweeps: int, limit: float
) -> dict[str, Any]:
    """An `OpenSMRun` as JSON data: OpenSM's routes of the first `sweeps` sweeps."""
    try:
        held = tables_of_opensm(fabric, engine, sweeps, limit)
    except Unavailable as error:
        return OpenSMRun(failed=str(error))._asdict()
    wrong = _wrong(fabric, held.routes) if held.lanes == 1 else ""
    quality = quality_of(fabric, mix, held.routes)
    return OpenSMRun("", held.seconds, held.lanes, wrong, held.peak_mb, quality)._asdict()


def _wrong(fabric: Fabric, routes: Routes) -> str:
    """The problem of routes between hosts. updn and ftree have no routes between spines, which no
    host needs; so the routes to the LIDs of switches are replaced by ours."""
    egress = load_engine("minhop").route(fabric, JobMix(()), Options()).egress.copy()
    egress[:, : fabric.terminals] = routes.egress[:, : fabric.terminals]
    found = check_routes(fabric, replace(routes, egress=egress))
    if found.unreachable_pairs:
        return f"{found.unreachable_pairs:,} pairs unreached"
    return "" if found.passed else "credit loop"


def opensm_run_of(found: dict[str, Any]) -> OpenSMRun:
    """An `OpenSMRun` from JSON data."""
    quality = found["quality"] and Quality(*found["quality"])
    return OpenSMRun(**found | {"quality": quality})


def tables_of_opensm(
    fabric: Fabric, engine: str, sweeps: int = 2, limit: float = 3600, **options: str
) -> OpenSMTables:
    """OpenSM's tables; `options` are lines of its configuration. Raises `Unavailable`, with text
    for a table, if there are none in time."""
    with ibsim_for(fabric) as ibsim, started(ibsim, fabric, engine, **options) as manager:
        try:
            wait_sweeps(manager, sweeps, limit)
        except Unavailable as error:
            if not manager.alive():
                raise Unavailable("OpenSM ended") from error
            raise Unavailable(f"unfinished at {_running(manager.log()):.0f} s") from error
        bridge = PluginClient(manager.socket_path, timeout=limit)
        used = bridge.status().engine_in_force
        if used != engine:
            raise Unavailable(f"gave up, {used} instead")
        tables = read_routes_file(bridge.dump().path)
        log = manager.log()
        lanes = _LANES.findall(log)
        return OpenSMTables(
            routing_steps(log)[:sweeps],
            int(lanes[-1]) if lanes else 1,
            peak_mb(manager.pid),
            file_to_routes(fabric, tables),
        )


def routing_steps(log: str) -> list[float]:
    """Seconds of each finished routing step in OpenSM's log."""
    return [(_when(end) - _when(begin)).total_seconds() for begin, _, end in _STEP.findall(log)]


def _running(log: str) -> float:
    """Seconds since the last routing step began; 0 if none has begun."""
    begun = re.findall(_BEGIN, log, re.MULTILINE)
    return (datetime.now().replace(year=2000) - _when(begun[-1][0])).total_seconds() if begun else 0


def _when(stamp: str) -> datetime:
    return datetime.strptime(f"2000 {stamp}", "%Y %b %d %H:%M:%S %f")
