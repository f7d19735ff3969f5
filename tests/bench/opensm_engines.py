"""OpenSM's own engines and ours on the same simulated fabric, in one run.

OpenSM's time is from its log: from `building routing with '…'` to `… tables configured on all
switches`. That is the routing step and the handing over of the tables to the sender, which does
not wait (some hundredths of a second at 1,728 hosts). dfsssp's includes the removal of deadlocks,
so ours is shown with the proof that there is none, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from sar_agent.check import check_routes
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.install.bridge import Bridge
from sar_agent.install.plan import file_to_routes
from sar_agent.install.routes_file import read_routes_file
from sar_agent.jobs import JobMix
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.lab.live.generated import ibsim_of
from sar_agent.lab.live.ibsim import Ibsim
from sar_agent.measure import measure
from sar_agent.routing import Options, Routes, load_engine
from tests.bench.simulated import opensm
from tests.bench.table import Table, goal
from tests.bench.timing import Times, repeat

ALL = ("dfsssp", "minhop", "updn", "ftree")
DEFAULT = {"xgft:2;18,36;1,18": ALL, "xgft:3;12,12,12;1,12,12": ALL}
FULL = {"xgft:3;18,18,16;1,18,18": ALL, "xgft:3;18,18,36;1,18,18": ("minhop",)}
GOAL = "xgft:3;12,12,12;1,12,12"
OURS = ("sar", "dfsssp", "minhop")

_STAMP = r"^(\w+ \d+ [\d:]+ \d{6}) .*"
_STEP = re.compile(
    _STAMP + r"ucast_mgr_route: building routing with '(\w+)'(?s:.*?)"
    r"(?m:" + _STAMP + r"osm_ucast_mgr_process: \2 tables configured)",
    re.MULTILINE,
)


def tables(full: bool) -> Iterator[Table]:
    """A table per fabric."""
    for spec, engines in (DEFAULT | (FULL if full else {})).items():
        yield compare(spec, engines)


def compare(spec: str, engines: tuple[str, ...]) -> Table:
    """OpenSM with each of `engines` in turn, and ours before, between and after them."""
    fabric = load_fabric(spec)
    mix = synthetic_mix(fabric, 1)
    routes = {name: load_engine(name).route(fabric, mix, Options()) for name in OURS}
    ours: dict[str, Times] = {name: Times() for name in OURS}
    checks = Times()
    check_routes(fabric, routes["sar"]).require()
    theirs: dict[str, tuple[Times, Routes]] = {}
    with ibsim_of(fabric) as ibsim:
        for engine in engines:
            _time_ours(fabric, mix, ours, checks)
            theirs[engine] = installed(ibsim, fabric, engine)
        _time_ours(fabric, mix, ours, checks)

    table = Table(
        f"OpenSM's engines and ours, {fabric.terminals:,} hosts, {fabric.switches:,} switches",
        ("engine", "routing step, s", "x the time of our sar", "dark fiber", "largest EFI"),
        f"`{spec}`, job mix `mix:1` ({len(mix.jobs)} multi-switch jobs). OpenSM's times are from "
        "its own log, two sweeps each; ours are of the whole call, five before, between and after "
        "OpenSM's runs; median (least … most). Dark fiber and the largest effective EFI are of the "
        "tables that the switches confirmed to OpenSM (those of ours: of the routes computed).",
    )
    sar, proved = ours["sar"].median, ours["sar"].median + checks.median
    for engine, (times, held) in theirs.items():
        quality = _quality(fabric, mix, held)
        table.add(f"OpenSM {engine}", times.show(), f"{times.median / sar:.1f}", *quality)
    for name, times in ours.items():
        quality = _quality(fabric, mix, routes[name])
        table.add(f"sar-agent {name}", times.show(), f"{times.median / sar:.2f}", *quality)
    table.add("sar-agent sar and its check", f"{proved:.3f}", f"{proved / sar:.2f}", "", "")
    if spec == GOAL:
        dfsssp, least = theirs["dfsssp"][0].median, min(theirs["dfsssp"][0]) / min(ours["sar"])
        table.goals = [
            goal("OpenSM dfsssp / sar", dfsssp / sar, 100, "x", at_least=True),
            f"The least of either: {least:.3g} x",
            f"With our check counted as routing, too: {dfsssp / proved:.3g} x",
        ]
    return table


def _time_ours(fabric: Fabric, mix: JobMix, ours: dict[str, Times], checks: Times) -> None:
    for name, times in ours.items():
        engine = load_engine(name)
        for _ in range(5):
            with times.one():
                engine.route(fabric, mix, Options())
    routes = load_engine("sar").route(fabric, mix, Options())
    checks += repeat(lambda: check_routes(fabric, routes), 1)


def installed(ibsim: Ibsim, fabric: Fabric, engine: str) -> tuple[Times, Routes]:
    """OpenSM's routing steps with that engine, and the tables that the switches then hold."""
    with opensm(ibsim, fabric, engine, 3600) as manager:
        status = Bridge(manager.socket_path).status()
        if status.engine_in_force != engine:
            raise RuntimeError(f"{status.engine_in_force} is in force instead of {engine}")
        tables_in_force = read_routes_file(Bridge(manager.socket_path).dump())
        times = Times(routing_steps(manager.log(), engine))
    return times, file_to_routes(fabric, tables_in_force)


def routing_steps(log: str, engine: str) -> list[float]:
    """Seconds of each routing step of that engine in OpenSM's log."""
    steps = []
    for start, name, end in _STEP.findall(log):
        began, ended = (
            datetime.strptime(f"2000 {at}", "%Y %b %d %H:%M:%S %f") for at in (start, end)
        )
        if name == engine:
            steps.append((ended - began).total_seconds())
    return steps


def _quality(fabric: Fabric, mix: JobMix, routes: Routes) -> tuple[str, str]:
    found = measure(fabric, mix, routes)
    return f"{found.dark_fiber_ratio:.1%}", str(found.effective_efi_max)
