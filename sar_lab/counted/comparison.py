"""The run times of the same programs on the routes of each engine, seed by seed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sar_agent.counters.weight_levels import WeightLevels, weights_of
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.util.text_files import write_text
from sar_lab.counted.busy_cluster import BusyCluster, busy_cluster, sent_shares
from sar_lab.counted.flow_tables import counted_flows, flow_routes
from sar_lab.fluid.adaptive import AdaptiveRouting
from sar_lab.papers.pictures import save
from sar_lab.statistics import Estimate, median_of
from sar_lab.trace.play_trace import play_trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FABRIC = "xgft:2;12,24;1,8"
"""288 hosts, 12 on a leaf switch with 8 uplinks."""
FLOWLET = 64 * 2**10
NEVER = 1e9
"""Seconds until an adaptive router learns of remote links that knows only its own queues."""
BASELINE = "sar-plus, full rate"
COUNTED = "sar-plus, counted weights"
ROWS: tuple[tuple[str, str], ...] = (
    ("all", "all jobs"),
    ("senders", "jobs that send all the time"),
    ("others", "the other jobs"),
    ("worst", "slowest job"),
)

Result = dict[str, dict[str, float]]
"""Run times by engine and row: means over jobs, and the slowest; 1 is a network without
contention."""


def compare_engines_at(
    fabric: Fabric, seed: int, progress: Callable[[str], None] = lambda _: None
) -> Result:
    """One busy cluster. The counted weights are those of the same programs on the routes at full
    rate, in the agent's own levels; then the programs run again from their start."""
    cluster = busy_cluster(fabric, seed)
    found: Result = {}

    def run(name: str, routes: Routes | AdaptiveRouting) -> F64:
        seconds, slowdown = run_times(fabric, cluster, routes)
        found[name] = summary(cluster, slowdown)
        progress(f"seed {seed}: {name} {found[name]['all']:.3f}")
        return seconds

    for name in ("dfsssp", "sar"):
        run(name, load_engine(name).route(fabric, cluster.mix, Options()))
    routes = load_engine("sar-plus").route(fabric, cluster.mix, Options())
    seconds = run(BASELINE, routes)
    weighed = counted_mix(fabric, cluster, seconds)
    run(COUNTED, load_engine("sar-plus").route(fabric, weighed, Options()))
    run("AFAR-like", flow_routes(fabric, counted_flows(fabric, cluster)))
    run("adaptive, local queues", AdaptiveRouting(FLOWLET, NEVER, seed=seed))
    run("adaptive, Conga-like", AdaptiveRouting(FLOWLET, seed=seed))
    return found


def counted_mix(fabric: Fabric, cluster: BusyCluster, seconds: F64) -> JobMix:
    """The jobs with the weights that the agent would use."""
    shares = sent_shares(fabric, cluster, seconds)
    levels = WeightLevels(0.0).propose(shares, list(shares))
    weights = weights_of(levels)
    return JobMix(tuple(replace(j, weight=weights.get(j.id, 1.0)) for j in cluster.mix.jobs))


def run_times(
    fabric: Fabric, cluster: BusyCluster, routes: Routes | AdaptiveRouting
) -> tuple[F64, F64]:
    """Both float64[J]: seconds of each job, and the same by its seconds without contention."""
    times = play_trace(fabric, routes, cluster.trace, cluster.placement)[: len(cluster.mix.jobs)]
    seconds = np.array([time.seconds for time in times])
    alone = np.array(
        [time.alone.sum() + sum(phase.compute for phase in time.program.phases) for time in times]
    )
    return seconds, seconds / alone


def summary(cluster: BusyCluster, slowdown: F64) -> dict[str, float]:
    """The rows of the table."""
    senders = np.array(cluster.senders)
    return {
        "all": float(slowdown.mean()),
        "senders": float(slowdown[senders].mean()),
        "others": float(slowdown[~senders].mean()),
        "worst": float(slowdown.max()),
    }


def compare_engines_over(
    seeds: Sequence[int], folder: Path, progress: Callable[[str], None]
) -> dict[str, Any]:
    """All seeds; writes counted-weights.json and counted-weights.png to `folder`."""
    fabric = load_fabric(FABRIC)
    results: dict[str, Result] = {}
    stored: dict[str, Any] = {"fabric": FABRIC, "results": results}
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:  # the file is whole after each seed
        results[str(seed)] = compare_engines_at(fabric, seed, progress)
        write_text(folder / "counted-weights.json", json.dumps(stored, indent=1) + "\n")
    save(lambda figure: draw(figure, results), folder / "counted-weights.png", (8.4, 3.6))
    return stored


def paired(results: dict[str, Result], engine: str, row: str) -> Estimate:
    """The median over seeds of the run time by that of `BASELINE` with the same seed."""
    return median_of([one[engine][row] / one[BASELINE][row] for one in results.values()])


def table(results: dict[str, Result]) -> Iterator[str]:
    """Markdown: medians of run times; in brackets, by `BASELINE`, seed by seed."""
    yield f"| routes | {' | '.join(words for _, words in ROWS)} |"
    yield f"|---|{'---|' * len(ROWS)}"
    for engine in next(iter(results.values())):
        cells = []
        for row, _ in ROWS:
            value = float(np.median([one[engine][row] for one in results.values()]))
            against = paired(results, engine, row)
            brackets = "" if engine == BASELINE else f" ({against.words()})"
            cells.append(f"{value:.2f}{brackets}")
        yield f"| {engine} | {' | '.join(cells)} |"


def draw(figure: Figure, results: dict[str, Result]) -> None:
    """Run times by those of `BASELINE`: a point for each seed, a line at the median."""
    shown = ROWS[:3]
    engines = [name for name in next(iter(results.values())) if name != BASELINE]
    for place, (axes, (row, words)) in enumerate(
        zip(figure.subplots(1, len(shown), sharey=True), shown, strict=True)
    ):
        for i, engine in enumerate(reversed(engines)):
            values = [one[engine][row] / one[BASELINE][row] for one in results.values()]
            colour = "#aa3377" if engine == COUNTED else "#4477aa"
            axes.plot(values, [i] * len(values), "o", color=colour, markersize=4, alpha=0.7)
            axes.plot([float(np.median(values))] * 2, [i - 0.3, i + 0.3], color=colour)
        axes.axvline(1, color="#999999", linewidth=1)
        axes.set_title(words, fontsize=9)
        axes.tick_params(labelsize=8)
        if not place:
            axes.set_yticks(range(len(engines)), list(reversed(engines)), fontsize=8)
    figure.supxlabel("run time by that on sar-plus at full rate, same seed (left is faster)",
                     fontsize=9)  # fmt: skip
