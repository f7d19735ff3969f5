"""The pictures of docs/research/performance.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

from tests.bench.mixes import MixQuality

Curve = Sequence[tuple[int, float]]
"""Hosts and seconds."""
OURS = {"sar-plus": "#1b6ac9", "sar": "#d1495b", "dfsssp": "#8a8a8a"}
MARKS = "osD^v*"
NAMES_APART = 1.5
"""The least factor between the heights of two labels."""
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.which": "major",
    "grid.color": "#e3e3e3",
    "axes.axisbelow": True,
    "legend.frameon": False,
}


def times(ours: Mapping[str, Curve], theirs: Mapping[str, Curve], path: Path) -> None:
    """Seconds over hosts, both logarithmic: ours in colour, OpenSM's in grey."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
        greys = plt.cm.Greys(np.linspace(0.4, 0.85, max(1, len(theirs))))
        ends = []
        for (name, curve), grey, mark in zip(theirs.items(), greys, MARKS, strict=False):
            axes.plot(*zip(*curve, strict=True), color=grey, marker=mark, ms=4, lw=1, ls="--")
            ends.append((*curve[-1], f"OpenSM {name}", grey))
        for name, curve in ours.items():
            axes.plot(*zip(*curve, strict=True), color=OURS[name], marker="o", ms=5, lw=2)
            ends.append((*curve[-1], f"sar-agent {name}", OURS[name]))
        _name(axes, ends)
        axes.set(xscale="log", yscale="log", xlabel="hosts", ylabel="seconds for all routes")
        hosts = sorted({h for curve in (*ours.values(), *theirs.values()) for h, _ in curve})
        axes.set_xlim(hosts[0] / 1.2, hosts[-1] * 4)
        shown = [h for h in hosts if h in (648, 1728, 3456, 5184, 11664, 27648, 65536)]
        axes.set_xticks(shown, [f"{h:,}" for h in shown])
        axes.minorticks_off()
        axes.set_title("Time to route a fat tree", loc="left")
        _save(figure, path)


def _name(axes: plt.Axes, ends: list[tuple[int, float, str, object]]) -> None:
    """Labels each curve at its end; labels of curves with equal ends are stacked."""
    lowest: dict[int, float] = {}
    for hosts, seconds, text, colour in sorted(ends, key=lambda end: end[:2]):
        height = max(seconds, NAMES_APART * lowest.get(hosts, 0))
        lowest[hosts] = height
        axes.annotate(
            text, (hosts, height), (6, 0), textcoords="offset points", va="center", color=colour,
            fontsize=8,
        )  # fmt: skip


def loads(mixes: Sequence[MixQuality], path: Path) -> None:
    """Draws a dot for each mix: the largest load divided by its bound."""
    fabrics = list(dict.fromkeys(mix.fabric for mix in mixes))
    random = np.random.default_rng(1)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(7.2, 0.62 * len(fabrics) + 1.1), layout="constrained")
        for place, fabric in enumerate(fabrics):
            for row, (engine, colour) in enumerate(OURS.items()):
                ratios = [
                    mix.quality.load_ratio
                    for mix in mixes
                    if (mix.fabric, mix.engine) == (fabric, engine)
                ]
                height = place + 0.25 * (row - 1) + random.uniform(-0.06, 0.06, len(ratios))
                label = engine if place == 0 else None
                axes.scatter(ratios, height, s=14, color=colour, alpha=0.7, lw=0, label=label)
        axes.axvline(1, color="black", lw=1)
        axes.set_yticks(range(len(fabrics)), fabrics)
        axes.set_ylim(len(fabrics) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("largest load of a channel / least possible (1: the optimum)")
        axes.set_title("How evenly routes load the links, a dot for each job mix", loc="left")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower right", ncols=3)
        _save(figure, path)


def _save(figure: plt.Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    plt.close(figure)
