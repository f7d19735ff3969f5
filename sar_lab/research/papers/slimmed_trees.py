"""The common part of Figs. 2 and 5 of oblivious-xgft-2009: slowdowns on trees of 16 … 1 roots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sar_lab.research.packets import PacketModel
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.outcome import Axes
from sar_lab.research.papers.pictures import COLOURS, LABELS
from sar_lab.research.papers.xgft_slowdown import program, slimmed, times
from sar_lab.research.statistics import median_of

ROOTS = tuple(range(16, 0, -1))
PROGRAM = {"WRF-256": "wrf256", "CG.D-128": "cgd128"}
DRAWN = {"random", "rnca-u", "rnca-d"}
"""Engines that differ from seed to seed."""
Slowdowns = dict[str, dict[int, list[float]]]
"""Engine → w2 → the slowdown of each seed."""


def slowdowns(
    workload: str, engines: Sequence[str], seeds: Sequence[int], packets: PacketModel | None = None
) -> Slowdowns:
    """Slowdowns of the whole program, or of one phase if the workload names it. All phases take
    equally long on a crossbar, so the slowdown of a program is their mean."""
    results: Slowdowns = {}
    for name in engines:
        drawn = seeds if name in DRAWN else (0,)
        results[name] = {
            roots: _slowdowns(workload, name, roots, list(drawn), packets) for roots in ROOTS
        }
    return results


def _slowdowns(
    workload: str, name: str, roots: int, seeds: list[int], packets: PacketModel | None
) -> list[float]:
    base, _, phase = workload.partition(", phase ")
    each = _times(base, name, roots, seeds, packets)
    return [times[int(phase) - 1] if phase else float(np.mean(times)) for times in each]


@measured
def _times(
    workload: str, name: str, roots: int, seeds: list[int], packets: PacketModel | None
) -> list[list[float]]:
    """The phases' slowdowns of each seed."""
    fabric, view = slimmed(roots)
    phases = program(PROGRAM[workload]).phases
    return [times(name, fabric, view, phases, seed, packets=packets) for seed in seeds]


def curves(axes: Axes, results: Slowdowns, title: str) -> None:
    """Draws medians over w2, from 16 roots to one, with the middle half of the seeds."""
    for name, by_roots in results.items():
        draws = [by_roots[roots] for roots in ROOTS]
        label, colour = LABELS.get(name, name), COLOURS.get(name)
        style = "--" if name == "dmodk" else "-"
        axes.plot(ROOTS, [median_of(d).value for d in draws], style, label=label, color=colour)
        if len(draws[0]) > 1:
            low, high = np.percentile(np.array(draws), [25, 75], axis=1)
            axes.fill_between(ROOTS, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.set(title=title, xlabel="roots (w2)", ylabel="slowdown against a crossbar", ylim=0)
    axes.set_xticks(ROOTS[::3])
    axes.invert_xaxis()
    axes.legend()
