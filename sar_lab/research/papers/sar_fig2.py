"""SAR, Fig. 2: three equal jobs on a two-level tree, oblivious and scheduling-aware.

The paper prints neither the tree nor the sizes, but "more than 160 to 60" is far from what a tree
of full bandwidth gives. So the row sweeps oversubscription and job size, and shows where Algorithm
1 is no better than oblivious routing; the figure is the 3:1 tree with three jobs of 43 hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.quality import measure
from sar_agent.routing import Options
from sar_lab.opensm_tables import lab_engine
from sar_lab.replay.chain import CachedEngine
from sar_lab.research.papers.claims import NEAR, times_as_much, value
from sar_lab.research.papers.compared import claim, compared
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pictures import COLOURS, LABELS, spans
from sar_lab.research.papers.published import quotes
from sar_lab.research.statistics import Estimate, median_of
from sar_lab.research.three_jobs import three_equal_jobs

SAID = quotes("sar-fig2")
TREES = {"1:1": "xgft:2;36,18;1,36", "2:1": "xgft:2;36,18;1,18", "3:1": "xgft:2;36,18;1,12"}
"""648 hosts on 18 leaf switches, by oversubscription."""
HOSTS = (18, 43, 72, 108, 216)
"""Hosts of each of three jobs: 8 to 100 % of the tree."""
FIGURE = "3:1", 43
ENGINES = {e: LABELS[e] for e in ("opensm-dfsssp", "opensm-ftree", "sar", "sar-plus")}
_TREE_COLOURS = {"1:1": "#aa3377", "2:1": "#ccbb44", "3:1": "#000000"}
MORE_THAN, LEFT = SAID["peak"].numbers
"""The published peaks: "more than 160" is left at 60."""
SHOWN = ("opensm-dfsssp", "sar")
OBLIVIOUS = ("opensm-dfsssp", "opensm-ftree")


class Peak(NamedTuple):
    """One engine on the jobs of one seed."""

    most: float
    """The largest effective EFI."""
    dark: float
    efi: list[int]
    """Of each channel, for the first seed of the figure."""


Point = dict[str, list[Peak]]
"""Engine → the peak of each seed."""


def sar_fig2(seeds: Sequence[int]) -> Outcome:
    """Runs every engine on the jobs of each seed; sar-plus for the figure only."""
    points = {(r, hosts): point_of(r, hosts, list(seeds)) for r in TREES for hosts in HOSTS}
    figure = points[FIGURE]
    peaks = {name: _peaks(each) for name, each in figure.items()}
    dark = {n: [100 * m.dark for m in each] for n, each in figure.items()}
    both = {"the largest effective EFI": peaks, "dark fiber": dark}
    of_seeds = {w: compared({e: [d] for e, d in each.items()}) for w, each in both.items()}
    claims = []
    for name in OBLIVIOUS:
        claims += [
            claim(
                of_seeds[what]["sar"] < of_seeds[what][name],
                f"{what}: SAR lower than {ENGINES[name]}",
                ours=f"{times_as_much(each[name], each['sar']).words()} times as much",
                said=SAID["peak" if each is peaks else "balance"],
            )
            for what, each in both.items()
        ]
    left = times_as_much(peaks["sar"], peaks["opensm-dfsssp"])
    claims.append(
        value(
            "share of DFSSSP's peak that is left",
            LEFT / MORE_THAN,
            left.value,
            NEAR,
            said=SAID["peak"],
        )
    )
    rows = [
        [label, median_of(peaks[n]).words(0), median_of(dark[n]).words(1)]
        for n, label in ENGINES.items()
    ]
    sweep = [[r, *(_share(points[r, hosts]).words() for hosts in HOSTS)] for r in TREES]
    return Outcome(
        claims,
        tables=[
            ResultTable(["", "largest effective EFI", "dark fiber, %"], rows),
            ResultTable(["SAR's share of the peak; hosts of a job", *map(str, HOSTS)], sweep),
        ],
        draw=lambda picture: _draw(picture, xgft_fabric(TREES[FIGURE[0]]), points),
    )


@measured
def point_of(ratio: str, hosts: int, seeds: list[int]) -> Point:
    """Every engine on the jobs of each seed; sar-plus and the links' EFI for the figure only."""
    fabric, figure = xgft_fabric(TREES[ratio]), (ratio, hosts) == FIGURE
    engines = {
        name: CachedEngine(lab_engine(name)) for name in ENGINES if figure or name != "sar-plus"
    }
    results: Point = {name: [] for name in engines}
    for seed in seeds:
        mix = three_equal_jobs(fabric, hosts, seed)
        for name, found in results.items():
            each = measure(fabric, mix, engines[name].route(fabric, mix, Options()))
            efi = each.channel_efi.tolist() if figure and not found else []
            found.append(Peak(float(each.effective_efi_max), each.dark_fiber_ratio, efi))
    return results


def _peaks(found: Sequence[Peak]) -> list[float]:
    return [each.most for each in found]


def _share(point: Point) -> Estimate:
    """SAR's peak, divided by that of the oblivious engine with the lower mean."""
    other = min(OBLIVIOUS, key=lambda name: np.mean(_peaks(point[name])))
    return times_as_much(_peaks(point["sar"]), _peaks(point[other]))


def _draw(figure: Figure, fabric: Fabric, points: dict[tuple[str, int], Point]) -> None:
    """Above: the effective EFI of every link, as the paper's heat maps, for the first seed.
    Below: the peaks of all seeds, and where Algorithm 1 loses."""
    above, below = figure.subplots(2, 2, height_ratios=(1, 1.15))
    found = points[FIGURE]
    most = max(found[name][0].most for name in SHOWN)
    leaves = len(fabric.leaves)
    up = np.flatnonzero(np.isin(fabric.channel_source, fabric.leaves))
    for axes, name in zip(above, SHOWN, strict=True):
        efi = np.array(found[name][0].efi)
        ways = (efi[c].reshape(leaves, -1).T for c in (up, fabric.channel_reverse[up]))
        matrix = np.concatenate(list(ways))
        image = axes.imshow(matrix, aspect="auto", cmap="viridis", vmin=0, vmax=most)
        roots = len(matrix) // 2
        axes.axhline(roots - 0.5, color="white", lw=1.5)
        axes.set_xticks(range(0, leaves, 3))
        axes.set_yticks([(roots - 1) / 2, roots + (roots - 1) / 2], ["up", "down"])
        peak = found[name][0].most
        axes.set(title=f"{ENGINES[name]}, seed 0, most {peak:.0f}", xlabel="leaf switch")
        axes.title.set_fontsize("small")
    above[0].set_ylabel(f"links to and from {roots} roots")
    figure.colorbar(image, ax=above, label="effective EFI")
    peaks, sweep = below
    at = np.arange(len(ENGINES))
    for x, name in zip(at, ENGINES, strict=True):
        draws = _peaks(found[name])
        peaks.plot(np.full(len(draws), x), draws, ".", color=COLOURS[name], alpha=0.6)
        middle = median_of(draws)
        peaks.errorbar([x + 0.2], [middle.value], spans([middle]), fmt="o",
                       color=COLOURS[name], capsize=3)  # fmt: skip
    peaks.plot([0, 2], [MORE_THAN, LEFT], "kD", ms=8, mfc="none",
               label=f"published: above {MORE_THAN:g}, and {LEFT:g}")  # fmt: skip
    peaks.set_xticks(at, list(ENGINES.values()))
    peaks.set(ylabel="largest effective EFI", ylim=0,
              title=f"{FIGURE[0]}, 3 x {FIGURE[1]} hosts, n = {len(draws)}")  # fmt: skip
    for ratio, marker in zip(TREES, "os^", strict=True):
        each = [_share(points[ratio, hosts]) for hosts in HOSTS]
        sweep.errorbar(HOSTS, [e.value for e in each], spans(each), marker=marker, capsize=2,
                       label=f"{ratio} tree", color=_TREE_COLOURS[ratio])  # fmt: skip
    sweep.axhline(1.0, color="black", lw=0.8)
    sweep.plot([FIGURE[1]], [LEFT / MORE_THAN], "kD", ms=8, mfc="none")
    sweep.set(xlabel="hosts of each of three jobs", ylabel="SAR's peak / best oblivious peak",
              ylim=0, title=f"above 1, SAR loses (n = {len(draws)}, 95 % intervals)")  # fmt: skip
    for axes in below:
        axes.title.set_fontsize("small")
        axes.legend(fontsize="small")
