"""Our engines and OpenSM's on the same fabrics under the same jobs, in one run: time and worth."""

from __future__ import annotations

from collections.abc import Iterator

from sar_agent.fabric import Fabric
from sar_agent.jobs.synthetic import synthetic_mix
from tests.bench import ours, theirs
from tests.bench.fabrics import LARGEST, MIDDLE, SMALL, fabric_of, size_of, there
from tests.bench.kept import Kept
from tests.bench.ours import Ours
from tests.bench.quality import COLUMNS, Quality
from tests.bench.table import Table, goal
from tests.bench.theirs import Theirs

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
"""The rest of OpenSM's engines take minutes each there; `dfsssp` alone takes ten."""
LIMIT = 25 * 60
SECONDS = {("sar-plus", MIDDLE): 0.1, ("sar", LARGEST): 0.4, ("sar-plus", LARGEST): 2.5}
"""Goals; those of the ratio and the memory are for `LARGEST`, too."""
TIMES_FASTER = 1000
BEYOND_IMPORTS_MB = 200


def tables(full: bool, kept: Kept) -> Iterator[Table]:
    """A table per fabric."""
    for name in there(wanted(full)):
        yield compare(name, wanted(full)[name], kept)


def wanted(full: bool) -> dict[str, tuple[str, ...]]:
    """Fabrics, and OpenSM's engines on each."""
    return DEFAULT | (FULL if full else {})


def compare(name: str, engines: tuple[str, ...], kept: Kept) -> Table:
    """A process for each of our engines, and an OpenSM for each of its own."""
    fabric = fabric_of(name)
    mine = {row: measured(name, row, kept) for row in OURS}
    yours = {engine: measured_theirs(name, fabric, engine, kept) for engine in engines}
    table = Table(
        f"Engines on {name}: {size_of(fabric)}",
        ("engine", "seconds", "peak memory", *COLUMNS, "lanes", "entries changed"),
        f"Job mix `mix:1`: {_bounds(mine['sar'].quality)}. OpenSM: {_sweeps(name)}.",
    )
    for row, found in mine.items():
        table.add(f"sar-agent {row}", *_cells_of_ours(found))
    for engine, other in yours.items():
        table.add(f"OpenSM {engine}", *_cells_of_theirs(other))
    table.goals = list(_goals(name, mine, yours))
    return table


def measured(name: str, row: str, kept: Kept) -> Ours:
    """One of the rows `OURS`."""
    return ours.read(kept(f"performance {name} {row}", lambda: ours.ours(name, *OURS[row])))


def measured_theirs(name: str, fabric: Fabric, engine: str, kept: Kept) -> Theirs:
    """One of OpenSM's engines."""
    mix, sweeps = synthetic_mix(fabric, 1), 1 if name in FULL else 2
    found = kept(
        f"performance {name} OpenSM {engine}",
        lambda: theirs.theirs(fabric, mix, engine, sweeps, LIMIT),
    )
    return theirs.read(found)


def _sweeps(name: str) -> str:
    return "its first sweep" if name in FULL else "its first two sweeps"


def _bounds(quality: Quality) -> str:
    return (
        f"no minimal-hop routes have a largest effective EFI below {quality.efi_bound}, a largest "
        f"load below {quality.load_bound:.3f}, or less dark fiber than {quality.dark_bound:.1%}"
    )


def _cells_of_ours(found: Ours) -> tuple[str, ...]:
    changed = f"{found.changed:.1%}"
    lanes = str(found.lanes)
    return (
        found.times.show(),
        f"{found.peak_mb:.0f} MB",
        *found.quality.cells(),
        lanes,
        changed,
    )


def _cells_of_theirs(found: Theirs) -> tuple[str, ...]:
    if found.quality is None:
        return (found.failed, *[""] * (len(COLUMNS) + 3))
    lanes = f"{found.lanes} ({found.wrong})" if found.wrong else str(found.lanes)
    quality = found.quality.cells()
    return (found.times.show(), f"{found.peak_mb:.0f} MB", *quality, lanes, "0.0%")


def _goals(name: str, mine: dict[str, Ours], yours: dict[str, Theirs]) -> Iterator[str]:
    for (row, where), limit in SECONDS.items():
        if where == name:
            yield goal(row, mine[row].times.median, limit, "s")
            cpu = sorted(mine[row].cpu)[len(mine[row].cpu) // 2]
            yield goal(f"{row}, CPU alone", cpu, limit, "s")
    sar, dfsssp = mine["sar"], yours["dfsssp"]
    if dfsssp.seconds:
        ratio = dfsssp.times.median / sar.times.median
        checked = dfsssp.times.median / (sar.times.median + sar.check_seconds)
        if name == LARGEST:
            yield goal("OpenSM dfsssp / sar", ratio, TIMES_FASTER, "x", at_least=True)
        else:
            yield f"OpenSM dfsssp / sar: {ratio:.3g} x"
        yield f"With our proof of no credit loops counted as routing, too: {checked:.3g} x"
    if name == LARGEST:
        for row, found in mine.items():
            beyond = found.peak_mb - found.imports_mb
            yield goal(f"{row}, memory beyond the imports", beyond, BEYOND_IMPORTS_MB, "MB")
