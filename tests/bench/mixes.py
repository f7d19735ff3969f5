"""The quality of routes over many job mixes, as ratios to proved bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, median
from typing import NamedTuple

from sar_agent.fabric import Fabric
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import Options, load_engine
from tests.bench.bench_fabrics import (
    FULL_BISECTION,
    MIDDLE,
    SLIMMED,
    SMALL,
    available,
    fabric_of,
    size_of,
)
from tests.bench.quality import Quality, quality_of
from tests.bench.stored_results import StoredResults
from tests.bench.table import Table, goal

HUNDRED = (SMALL, MIDDLE, SLIMMED, "dgx-ndr", "selene-storage")
OTHERS = ("psmn-x5", "small-2014", "director-notabs")
SEEDS = {name: range(1, 21) for name in HUNDRED} | {name: range(1, 6) for name in OTHERS}
ENGINES = ("sar-plus", "sar-plus, routes", "sar", "dfsssp")


class MixQuality(NamedTuple):
    """The quality on one mix; `seed` is that of `mix:SEED`."""

    fabric: str
    seed: int
    engine: str
    quality: Quality


def tables(full: bool, kept: StoredResults) -> Iterator[Table]:
    """A hundred mixes, and fewer on the other fabrics."""
    yield _table("A hundred job mixes", HUNDRED, kept)
    yield _table("Five job mixes on each of three more fabrics", OTHERS, kept)


def mixes(names: Sequence[str], kept: StoredResults) -> list[MixQuality]:
    """All rows of the available fabrics."""
    rows = []
    for name in available(names):
        fabric = fabric_of(name)
        for seed in SEEDS[name]:
            found = kept(f"mixes {name} {seed}", lambda f=fabric, s=seed: _measure(f, s))
            rows += [MixQuality(name, seed, engine, Quality(*found[engine])) for engine in ENGINES]
    return rows


def _measure(fabric: Fabric, seed: int) -> dict[str, Quality]:
    mix = synthetic_mix(fabric, seed)
    found = {}
    for row in ENGINES:
        name, _, routes = row.partition(", ")
        options = Options(objective="routes" if routes else "load")
        found[row] = quality_of(fabric, mix, load_engine(name).route(fabric, mix, options))
    return found


def _table(title: str, names: Sequence[str], kept: StoredResults) -> Table:
    rows = mixes(names, kept)
    table = Table(
        title,
        (
            "fabric",
            "engine",
            "EFI / bound, median (worst)",
            "load / bound, median (worst)",
            "throughput, mean (least of a mix)",
            "worst job",
            "dark fiber beyond the least",
        ),
        f"`mix:1` … `mix:{max(seed for name in names for seed in SEEDS[name])}` on each. "
        "`sar-plus` balances load; `sar-plus, routes` is the same engine with the objective of "
        "route counts (effective EFI). Bounds are proved (leaf, subtree and island cuts, whole "
        "routes and their sums, prices), so a ratio of 1 is optimal; a ratio above 1 may be due to "
        "a weak bound. ",
    )
    for name in dict.fromkeys(row.fabric for row in rows):
        for engine in ENGINES:
            found = [r.quality for r in rows if (r.fabric, r.engine) == (name, engine)]
            table.add(name, engine, *_cells(found))
    for name in dict.fromkeys(row.fabric for row in rows):
        table.note += f" `{name}`: {size_of(fabric_of(name))}."
    table.goals = list(_goals(rows))
    return table


def _cells(found: list[Quality]) -> Iterator[str]:
    for ratios in ([q.efi_ratio for q in found], [q.load_ratio for q in found]):
        yield f"{median(ratios):.3f} ({max(ratios):.3f})"
    means = [q.throughput_mean for q in found]
    yield f"{fmean(means):.3f} ({min(means):.3f})"
    yield f"{min(q.throughput_worst for q in found):.3f}"
    yield f"{100 * max(q.dark - q.dark_bound for q in found):.2f} points"


def _goals(rows: list[MixQuality]) -> Iterator[str]:
    efi = [r.quality.efi_ratio for r in rows if r.engine == "sar-plus, routes"]
    if efi:
        yield goal("EFI / bound, median", median(efi), 1.03, "")
        yield goal("EFI / bound, worst", max(efi), 1.10, "")
    plus = [r for r in rows if r.engine == "sar-plus"]
    if full := [r.quality for r in plus if r.fabric in FULL_BISECTION]:
        mean = fmean(q.throughput_mean for q in full)
        worst = min(q.throughput_worst for q in full)
        yield goal("throughput, full-bisection trees, mean", mean, 0.98, "", at_least=True)
        yield goal("throughput, full-bisection trees, worst job", worst, 0.92, "", at_least=True)
    if real := [r.quality.load_ratio for r in plus if ":" not in r.fabric]:
        yield goal("load / bound, real fabrics, worst", max(real), 1.05, "")
    if plus:
        yield goal("load / bound, worst", max(r.quality.load_ratio for r in plus), 1.10, "")
