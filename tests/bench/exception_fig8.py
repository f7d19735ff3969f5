"""sar-fig8 for `tests.bench exceptions`: an all-to-all by Open MPI's order, over stock fat-tree."""

from __future__ import annotations

from statistics import median

from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_lab.fluid import PATTERNS, job_times
from sar_lab.opensm_tables import lab_engine
from sar_lab.research.papers.sar_fig8 import scattered_job
from tests.bench.exception_rows import NOBODY
from tests.bench.table import Table, goal

SEEDS = 40
"""Placements, as the row has."""
NEEDED = 38
"""Placements of 40 in which the all-to-all may take no longer than on fat-tree."""


def fig8_table(engine: str) -> Table:
    """An engine and `sar`, placement by placement over OpenSM's own tables of fat-tree."""
    fabric = load_fabric("standin:taurus")
    stock = lab_engine("opensm-ftree").route(fabric, NOBODY, Options())
    table = Table(
        f"sar-fig8: {engine} over stock fat-tree, {SEEDS} placements",
        ("engine", "median", "least", "largest", "at most 1.00"),
        "The Taurus stand-in, one job of 28 hosts on ten leaf switches. Open MPI's order sends one "
        "message after the other without barriers (`shift-free`); times over those on the tables "
        "of OpenSM's ftree, for the same placement.",
    )
    for name in dict.fromkeys((engine, "sar", "dmodc")):
        ratios, own = [], load_engine(name)
        for seed in range(1, SEEDS + 1):
            mix = JobMix.of([scattered_job(fabric, seed)])
            times = [
                float(job_times(fabric, mix, routes, PATTERNS["shift-free"]).time[0])
                for routes in (own.route(fabric, mix, Options()), stock)
            ]
            ratios.append(times[0] / times[1])
        enough = sum(ratio <= 1 + 1e-6 for ratio in ratios)
        table.add(name, f"{median(ratios):.3f}", f"{min(ratios):.3f}", f"{max(ratios):.3f}",
                  f"{enough} of {SEEDS}")  # fmt: skip
        if name == engine:
            table.goals.append(goal("placements at most 1.00", enough, NEEDED, "", at_least=True))
    return table
