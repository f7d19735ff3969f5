"""SAR, Fig. 2: three equal jobs on a two-level tree, oblivious and scheduling-aware."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.quality import Measures, measure
from sar_agent.routing import Options, load_engine
from sar_lab.demo.three_jobs import HOSTS_PER_JOB, SPEC, three_equal_jobs
from sar_lab.papers.claims import NEAR, order, value
from sar_lab.papers.outcome import ResultTable, outcome
from sar_lab.papers.registry import ExperimentResult
from sar_lab.statistics import median_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "sar-fig2"
WHERE = "sar-2016, Fig. 2"
CLASS = "Q"
PUBLISHED = "the largest effective EFI falls from more than 160 to 60; fewer links are dark"
SEEDS = 40
_LABELS = {"dfsssp": "DFSSSP", "ftree": "fat-tree", "sar": "SAR", "sar-plus": "sar-plus (ours)"}


def run(seeds: Sequence[int], out: Path) -> ExperimentResult:
    """Runs every engine on the jobs of each seed."""
    fabric = xgft_fabric(SPEC)
    results: dict[str, list[Measures]] = {name: [] for name in _LABELS}
    for seed in seeds:
        mix = three_equal_jobs(fabric, seed=seed)
        for name, measures in results.items():
            routes = load_engine(name).route(fabric, mix, Options())
            measures.append(measure(fabric, mix, routes))
    peak = {name: median_of([m.effective_efi_max for m in each]) for name, each in results.items()}
    dark = {
        name: median_of([100 * m.dark_fiber_ratio for m in each]) for name, each in results.items()
    }
    oblivious = min(("dfsssp", "ftree"), key=lambda name: peak[name].value)
    claims = [
        order(
            "the peak is lower than under either oblivious routing",
            peak["sar"].value < peak[oblivious].value,
            f"{peak['sar'].words(1)} < {peak[oblivious].words(1)}",
        ),
        order(
            "less fiber is dark",
            dark["sar"].value < min(dark["dfsssp"].value, dark["ftree"].value),
            f"{dark['sar'].words(1)} %",
        ),
        value(
            "share of the peak that is left",
            60 / 160,
            peak["sar"].value / peak["dfsssp"].value,
            NEAR,
        ),
    ]
    rows = [[label, peak[name].words(1), dark[name].words(1)] for name, label in _LABELS.items()]
    return outcome(
        out / f"{NAME}.png",
        claims,
        f"{SPEC}, three jobs of {HOSTS_PER_JOB} hosts drawn at random: the paper prints neither "
        "tree nor placement, so its numbers could agree by chance only. Medians over seeds; the "
        "picture shows the first one.",
        because="tree, job sizes and placement are not in the text",
        tables=[ResultTable(["", "largest effective EFI", "dark fiber, %"], rows)],
        draw=lambda figure: _draw(figure, {name: each[0] for name, each in results.items()}),
    )


def _draw(figure: Figure, results: dict[str, Measures]) -> None:
    axes = figure.subplots(1, 2, sharey=True, sharex=True)
    most = max(results[name].effective_efi_max for name in ("dfsssp", "sar"))
    for here, name in zip(axes, ("dfsssp", "sar"), strict=True):
        here.hist(results[name].channel_efi, bins=np.arange(0, most + 3, 2), color="#4477aa")
        here.set(title=_LABELS[name], xlabel="effective EFI of a link")
    axes[0].set_ylabel("links")
