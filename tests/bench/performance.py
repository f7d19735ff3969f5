"""Time and quality of our engines and of OpenSM's, with the same fabrics and jobs, in one run."""

from __future__ import annotations

from collections.abc import Iterator

from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.fabric import Fabric
from tests.bench import opensm_engines, our_engines
from tests.bench.bench_fabrics import LARGEST, MIDDLE, SMALL, available, fabric_of, size_of
from tests.bench.opensm_engines import OpenSMRun
from tests.bench.our_engines import EngineRun
from tests.bench.quality import COLUMNS, Quality
from tests.bench.stored_results import StoredResults, other_day
from tests.bench.table import Table

OURS = {
    "minhop": ("minhop", "load"),
    "dfsssp": ("dfsssp", "load"),
    "sar": ("sar", "load"),
    "sar-plus": ("sar-plus", "load"),
    "sar-plus, routes": ("sar-plus", "routes"),
}
ALL = ("minhop", "updn", "ftree", "dfsssp", "lash", "nue")
DEFAULT = {SMALL: ALL, MIDDLE: ALL, "dgx-ndr": ALL, "selene-storage": ALL}
FULL = {LARGEST: ("minhop", "dfsssp")}
"""The other engines of OpenSM take minutes each on that fabric; `dfsssp` alone takes ten."""
SLOW = ("lash",)
"""Engines of OpenSM that take a minute a sweep on `MIDDLE`; the second sweep repeats the first."""
LIMIT = 25 * 60


def tables(full: bool, kept: StoredResults) -> Iterator[Table]:
    """A table for each fabric."""
    for name in available(wanted(full)):
        yield compare(name, wanted(full)[name], kept)


def wanted(full: bool) -> dict[str, tuple[str, ...]]:
    """Fabric → OpenSM's engines on it."""
    return DEFAULT | (FULL if full else {})


def compare(name: str, engines: tuple[str, ...], kept: StoredResults) -> Table:
    """The table of one fabric: a process for each of our engines, an OpenSM for each of its "
    "engines."""
    fabric = fabric_of(name)
    ours = {row: measured(name, row, kept) for row in OURS}
    theirs = {engine: measured_theirs(name, fabric, engine, kept) for engine in engines}
    results = {
        "OpenSM's rows ": [f"performance {name} OpenSM {engine}" for engine in engines],
        **{f"{row} ": [f"performance {name} {row}"] for row in OURS},
    }
    table = Table(
        f"Engines on {name}: {size_of(fabric)}",
        ("engine", "seconds", "peak memory", *COLUMNS, "lanes", "entries changed"),
        f"Job mix `mix:1`: {_bounds(ours['sar'].quality)}. OpenSM: {_sweeps(name)}."
        + other_day(kept, results),
    )
    for row, found in ours.items():
        table.add(f"sar-agent {row}", *_cells_of_ours(found))
    for engine, other in theirs.items():
        table.add(f"OpenSM {engine}", *_cells_of_theirs(other))
    table.goals = list(_ratios(ours, theirs))
    return table


def measured(name: str, row: str, kept: StoredResults) -> EngineRun:
    """The measurements of a row of `OURS`."""
    return our_engines.engine_run_of(
        kept(f"performance {name} {row}", lambda: our_engines.run_engine(name, *OURS[row]))
    )


def measured_theirs(name: str, fabric: Fabric, engine: str, kept: StoredResults) -> OpenSMRun:
    """The measurements of one of OpenSM's engines."""
    mix, sweeps = synthetic_mix(fabric, 1), 1 if name in FULL or engine in SLOW else 2
    found = kept(
        f"performance {name} OpenSM {engine}",
        lambda: opensm_engines.run_opensm(fabric, mix, engine, sweeps, LIMIT),
    )
    return opensm_engines.opensm_run_of(found)


def _sweeps(name: str) -> str:
    return "its first sweep" if name in FULL else f"its first two sweeps ({', '.join(SLOW)}: one)"


def _bounds(quality: Quality) -> str:
    return (
        f"no minimal-hop routes have a largest effective EFI below {quality.efi_bound}, a largest "
        f"load below {quality.load_bound:.3f}, or less dark fiber than {quality.dark_bound:.1%}"
    )


def _cells_of_ours(found: EngineRun) -> tuple[str, ...]:
    changed = f"{found.changed:.1%}"
    lanes = str(found.lanes)
    return (
        found.times.show(),
        f"{found.peak_mb:.0f} MB",
        *found.quality.cells(),
        lanes,
        changed,
    )


def _cells_of_theirs(found: OpenSMRun) -> tuple[str, ...]:
    if found.quality is None:
        return (found.failed, *[""] * (len(COLUMNS) + 3))
    lanes = f"{found.lanes} ({found.wrong})" if found.wrong else str(found.lanes)
    quality = found.quality.cells()
    return (found.times.show(), f"{found.peak_mb:.0f} MB", *quality, lanes, "0.0%")


def _ratios(ours: dict[str, EngineRun], theirs: dict[str, OpenSMRun]) -> Iterator[str]:
    sar, dfsssp = ours["sar"], theirs["dfsssp"]
    if dfsssp.seconds:
        ratio = dfsssp.times.median / sar.times.median
        checked = dfsssp.times.median / (sar.times.median + sar.check_seconds)
        yield f"OpenSM dfsssp / sar: {ratio:.3g} x"
        yield f"OpenSM dfsssp / sar with our proof of no credit loops: {checked:.3g} x"
