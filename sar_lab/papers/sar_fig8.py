"""SAR, Fig. 8: an all-to-all of 28 hosts on ten leaf switches of one island of Taurus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import Job, JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing import Options, load_engine
from sar_lab.fluid import PATTERNS, job_times
from sar_lab.opensm_tables import lab_engine
from sar_lab.papers.claims import Claim, order, times_as_much, told_apart
from sar_lab.papers.outcome import ResultTable, outcome
from sar_lab.papers.registry import ExperimentResult
from sar_lab.statistics import median_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "sar-fig8"
WHERE = "sar-2016, Fig. 8"
CLASS = "Q"
PUBLISHED = (
    "MPI_Alltoall of 1 MiB on 28 hosts: DFSSSP takes 7.1 % longer than fat-tree, SAR 17.6 % less "
    "than DFSSSP and 11.7 % less than fat-tree; SAR halves what contention adds"
)
SEEDS = 40
HOSTS, LEAVES = 28, 10
_LABELS = {
    "opensm-ftree": "fat-tree", "opensm-dfsssp": "DFSSSP", "sar": "SAR",
    "sar-plus": "sar-plus (ours)",
}  # fmt: skip
_SHOWN = {"shift-free": "one after the other", "alltoall": "all at once"}
"""Open MPI's fixed rule sends blocks from 3,000 bytes in pairs, one after the other: these are the
claims. The other order is shown for comparison."""


def scattered_job(fabric: Fabric, seed: int) -> Job:
    """28 hosts on ten leaf switches of the first large island, at least two on each."""
    random = np.random.default_rng(seed)
    island = [s for s in fabric.leaves if fabric.switch_name[s].startswith("I5-")]
    leaves = random.choice(island, LEAVES, replace=False)
    extra = random.multinomial(HOSTS - 2 * LEAVES, np.full(LEAVES, 1 / LEAVES))
    hosts = [
        random.choice(np.flatnonzero(fabric.terminal_switch == leaf), 2 + more, replace=False)
        for leaf, more in zip(leaves, extra, strict=True)
    ]
    return make_job("fig8", np.concatenate(hosts))


def run(seeds: Sequence[int], out: Path) -> ExperimentResult:
    """Each seed is another placement of the job; as in the paper, no other job sends."""
    fabric = load_fabric("standin:taurus")
    drawn: dict[tuple[str, str], list[float]] = {}
    oblivious = {
        name: lab_engine(name).route(fabric, JobMix(()), Options())
        for name in ("opensm-ftree", "opensm-dfsssp")
    }
    for seed in seeds:
        mix = JobMix.of([scattered_job(fabric, seed)])
        for name in _LABELS:
            routes = oblivious.get(name) or load_engine(name).route(fabric, mix, Options())
            for pattern in _SHOWN:
                time = job_times(fabric, mix, routes, PATTERNS[pattern]).time[0]
                drawn.setdefault((name, pattern), []).append(float(time))
    times = {key: median_of(each) for key, each in drawn.items()}
    ftree, dfsssp, sar = (
        drawn[name, "shift-free"] for name in ("opensm-ftree", "opensm-dfsssp", "sar")
    )
    added = {name: float(np.mean(each)) - 1 for name, each in (("sar", sar), ("ftree", ftree))}
    claims = [
        _slower("DFSSSP is slower than fat-tree", dfsssp, ftree, 7.1),
        _slower("DFSSSP is slower than SAR", dfsssp, sar, 21.4),
        _slower("fat-tree is slower than SAR", ftree, sar, 13.3),
        order(
            "SAR removes at least half of what contention adds to fat-tree",
            added["sar"] <= added["ftree"] / 2,
            f"{added['sar']:.0%} of the time is left, of {added['ftree']:.0%}",
        ),
    ]
    rows = [
        [label, *(times[name, pattern].words() for pattern in _SHOWN)]
        for name, label in _LABELS.items()
    ]
    return outcome(
        out / f"{NAME}.png",
        claims,
        "The Taurus stand-in, 28 hosts drawn on ten leaf switches of one island of 612, max-min "
        "fair fluid model, no other job sends. Times are multiples of the time on a network "
        "without contention; medians over placements. Open MPI's fixed rule sends all-to-all "
        "blocks from 3,000 bytes in pairs, so 1 MiB goes one after the other; its library's time "
        "is not modelled. fat-tree and DFSSSP are OpenSM's own tables.",
        because="the paper's placement is one draw, and its machine ran other jobs meanwhile",
        tables=[ResultTable(["time", *_SHOWN.values()], rows)],
        draw=lambda figure: _draw(figure, drawn),
    )


def _slower(says: str, slow: Sequence[float], fast: Sequence[float], published: float) -> Claim:
    """Judged by pairs of the same placement."""
    ratio = times_as_much(slow, fast)
    ours = f"{ratio.value - 1:+.1%} [{ratio.low - 1:+.1%}, {ratio.high - 1:+.1%}]"
    return order(f"{says} (one after the other)", told_apart(ratio), ours, f"+{published:.1f}%")


def _draw(figure: Figure, drawn: dict[tuple[str, str], list[float]]) -> None:
    axes = figure.subplots(1, len(_SHOWN), sharey=True)
    for here, (pattern, how) in zip(axes, _SHOWN.items(), strict=True):
        here.boxplot([drawn[name, pattern] for name in _LABELS], tick_labels=list(_LABELS.values()))
        here.set_title(how)
        here.tick_params(axis="x", rotation=20)
    axes[0].set_ylabel("time, 1 = no contention")
