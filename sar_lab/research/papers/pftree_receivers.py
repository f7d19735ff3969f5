"""pFTree, Figs. 13 to 15 (pftree-2016, Section 7.1): how often heavy receivers share links, and
interference of partitions, with and without weights.

Some victims under each leaf switch are receivers of weight 100. A link is contended if routes to R
> 1 receivers pass it in one direction; its contention is R - 1. Interference between the
partitions is the number of flows on shared links: the sum over all links that flows of both
partitions pass of the flows (pairs inside one partition) on the link.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.routing.routes import Routes
from sar_lab.research.papers.claims import EXACT, NEAR, Claim, value
from sar_lab.research.papers.compared import PLAIN, Compared, claim, compared
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.outcome import Axes, Figure, Outcome, ResultTable
from sar_lab.research.papers.pftree_trees import TREES, Table3Tree, VictimDraw, draw_victims, routed
from sar_lab.research.papers.pictures import COLOURS, LABELS, legend
from sar_lab.research.papers.published import quotes

ENGINES = ("pftree-printed", "pftree-wt-printed", "pftree-wt", "pftree")
MARKS = "os^v"
WEIGHT = 100.0
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class ContentionCounts:
    """The contention and interference of one set of routes."""

    down: int
    """Total contention of links towards leaf switches."""
    up: int
    links_down: int
    """Contended links towards leaf switches."""
    links_up: int
    interference: int


@cache
def contention_counts(tree: Table3Tree, engine: str, seed: int, per_leaf: int) -> ContentionCounts:
    """The counts with `per_leaf` receivers under each leaf switch."""
    draw, receivers = _receivers(tree, per_leaf, seed)
    heeds = engine.startswith("pftree-wt")
    routes = _routes(tree, engine, seed, receivers.tobytes() if heeds else b"")
    crossed = routes_over(draw.fabric, routes, draw.victims, receivers) > 0
    each = crossed.sum(axis=0)
    is_leaf = np.isin(draw.fabric.channel_target, draw.fabric.leaves)
    over = np.maximum(0, each - 1)
    return ContentionCounts(
        int(over[is_leaf].sum()),
        int(over[~is_leaf].sum()),
        int((over[is_leaf] > 0).sum()),
        int((over[~is_leaf] > 0).sum()),
        interference(draw, routes),
    )


@measured
def all_counts(tree: Table3Tree, engine: str, seeds: list[int]) -> list[ContentionCounts]:
    """The counts for 1 receiver under each leaf switch up to all victims, of each seed."""
    some = range(1, tree.victims // tree.leaves + 1)
    return [contention_counts(tree, engine, seed, each) for seed in seeds for each in some]


def interference(draw: VictimDraw, routes: Routes) -> int:
    """The number of flows on links that both partitions use, summed over these links."""
    victims = routes_over(draw.fabric, routes, draw.victims, draw.victims).sum(axis=0)
    other = routes_over(draw.fabric, routes, draw.others, draw.others).sum(axis=0)
    both = (victims > 0) & (other > 0)
    return int((victims + other)[both].sum())


def routes_over(fabric: Fabric, routes: Routes, sources: I32, destinations: I32) -> I64:
    """int64[D, C]: how many of the sources' routes to each destination pass each channel."""
    table = routes.next_channel(fabric)
    leaf, senders = np.unique(fabric.terminal_switch[sources], return_counts=True)
    values = np.zeros((len(destinations), fabric.channels), np.int64)
    row = np.arange(len(destinations))
    for start, count in zip(leaf, senders, strict=True):
        at = np.full(len(destinations), start)
        # The leaf switch of a destination reaches it without a channel.
        for _ in range(2):
            channel = table[destinations, at]
            on = channel >= 0
            values[row[on], channel[on]] += count
            at[on] = fabric.channel_target[channel[on]]
    return values


def _receivers(tree: Table3Tree, per_leaf: int, seed: int) -> tuple[VictimDraw, I32]:
    draw = draw_victims(tree, seed)
    random = np.random.default_rng([tree.nodes, seed, per_leaf])
    by_leaf = draw.victims[np.argsort(draw.fabric.terminal_switch[draw.victims], kind="stable")]
    some = random.permuted(by_leaf.reshape(tree.leaves, -1), axis=1)[:, :per_leaf]
    return draw, np.sort(some.ravel()).astype(np.int32)


@lru_cache(maxsize=8)
def _routes(tree: Table3Tree, engine: str, seed: int, receivers: bytes) -> Routes:
    heavy = np.frombuffer(receivers, np.int32)
    return routed(draw_victims(tree, seed), engine, {int(t): WEIGHT for t in heavy})


@dataclass(frozen=True)
class MeanAndRange:
    """Least, mean and most over all experiments (draws of victims, numbers of receivers)."""

    least: float
    mean: float
    most: float

    def words(self) -> str:
        """The three values as text."""
        return f"{self.least:g} / {self.mean:.1f} / {self.most:g}"


Spreads = dict[tuple[str, int], MeanAndRange]
"""The key is (engine, nodes)."""


def experiments(tree: Table3Tree, engine: str, seeds: Sequence[int], field: str) -> MeanAndRange:
    """A field of `ContentionCounts` for 1 receiver under each leaf switch up to all victims."""
    values = [float(getattr(each, field)) for each in all_counts(tree, engine, list(seeds))]
    return MeanAndRange(min(values), float(np.mean(values)), max(values))


def over_trees(seeds: Sequence[int], field: str) -> Spreads:
    """`experiments` of all trees and engines."""
    return {(e, t.nodes): experiments(t, e, seeds, field) for t in TREES for e in ENGINES}


Printed = Mapping[tuple[str, int], float]
"""(engine, nodes) → a published mean."""


def by_engine(results: Mapping[tuple[str, int], MeanAndRange]) -> dict[str, Compared]:
    """Engine → the mean on each tree."""
    return compared({e: [results[e, t.nodes].mean for t in TREES] for e in ENGINES}, PLAIN)


def panels_outcome(
    claims: Sequence[Claim], panels: Sequence[tuple[str, Spreads, str, Printed]]
) -> Outcome:
    """With a picture of panels. A panel has the title of its table, its values, the title of its
    picture, and published means."""

    def draw(figure: Figure) -> None:
        for axes, (_, values, title, printed) in zip(
            figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
        ):
            _ranges(axes, values, title, printed)
        title = "mean, least and most of all experiments"
        legend(figure, ncols=3, fontsize="small", title=title)

    tables = [_table(title, values) for title, values, *_ in panels]
    return Outcome(claims, tables, draw)


def _ranges(axes: Axes, values: Spreads, title: str, printed: Printed) -> None:
    """The mean, least and most of every engine over the trees, as lines on a logarithmic axis; 0
    stands below it, in a row of its own."""
    nodes = [tree.nodes for tree in TREES]
    floor = min([1.0, *(each.mean for each in values.values() if each.mean)]) / 4
    largest = max(1.0, *(each.most for each in values.values()))
    for place, engine in enumerate(ENGINES):
        for at, tree in enumerate(TREES):
            found, x = values[engine, tree.nodes], at + 0.2 * (place - 1.5)
            style: dict[str, Any] = {"color": COLOURS[engine], "label": LABELS[engine]}
            if found.mean:
                axes.vlines(x, found.least or floor, found.most, color=COLOURS[engine])
                axes.plot(x, found.mean, MARKS[place], ms=4, **style)
            else:
                axes.plot(x, floor, MARKS[place], ms=4, mfc="white", **style)
    for (engine, number), mean in printed.items():
        where = nodes.index(number) + 0.2 * (ENGINES.index(engine) - 1.5)
        axes.plot(where, mean or floor, "D", ms=9, mfc="none", color=COLOURS[engine],
                  label=f"published, {LABELS[engine]}")  # fmt: skip
    axes.axhspan(floor / 1.5, floor * 1.5, color="#888888", alpha=0.15, lw=0)
    axes.set_xticks(range(len(TREES)), [f"{t.nodes}\n{t.oversubscription}:1" for t in TREES])
    axes.set(title=title, xlabel="nodes, oversubscription", yscale="log", xlim=(-0.6, None))
    ticks = [10.0**n for n in range(int(math.log10(largest)) + 1)]
    axes.set_yticks([floor, *ticks], ["0", *(f"{tick:,.0f}" for tick in ticks)])
    axes.minorticks_off()


def _table(title: str, values: Spreads) -> ResultTable:
    """A row for each engine, a column for each tree."""
    rows = [[LABELS[e], *(values[e, t.nodes].words() for t in TREES)] for e in ENGINES]
    return ResultTable([f"{title}: least / mean / most", *(str(t.nodes) for t in TREES)], rows)


PRINTED, WEIGHTED = "pftree-printed", "pftree-wt-printed"


def pftree_fig13(seeds: Sequence[int]) -> Outcome:
    """Experiments with 1 … all victims of a leaf switch as receivers: total contention."""
    said = quotes("pftree-fig13")
    means = dict(zip((32, 1024), said["down"].numbers[::2], strict=False))
    down, up = (over_trees(seeds, field) for field in ("down", "up"))
    worst = max(down[WEIGHTED, t.nodes].most for t in TREES)
    says = "pFTree as printed more than pFTree-Wt as printed on every tree"
    lower, upper = by_engine(down), by_engine(up)
    claims = [
        claim(lower[PRINTED] > lower[WEIGHTED], f"down: {says}", said=said["none"]),
        claim(upper[PRINTED] > upper[WEIGHTED], f"up: {says}", said=said["higher"]),
        value("down, pFTree-Wt: most of all trees", 0, worst, said=said["none"]),
        *(
            value(f"down, pFTree: mean, {nodes:,} nodes", mean, down[PRINTED, nodes].mean, EXACT,
                  said=said["down"])
            for nodes, mean in means.items()
        ),
        value("down, pFTree: most, 1,024 nodes", said["most"], down[PRINTED, 1024].most, EXACT),
        *(
            value(f"up, {nodes:,} nodes: pFTree above pFTree-Wt, %", percent,
                  100 * (up[PRINTED, nodes].mean / up[WEIGHTED, nodes].mean - 1), EXACT,
                  said=said["up"])
            for nodes, percent in zip((768, 1024), said["up"].numbers, strict=True)
        ),
    ]  # fmt: skip
    printed = {(PRINTED, nodes): mean for nodes, mean in means.items()}
    printed |= {(WEIGHTED, nodes): 0.0 for nodes in means}
    panels = [
        ("down", down, "total contention down", printed),
        ("up", up, "total contention up", {}),
    ]
    return panels_outcome(claims, panels)


def pftree_fig14(seeds: Sequence[int]) -> Outcome:
    """The same experiments: links that receivers share."""
    said = quotes("pftree-fig14")
    mean, most = said["down"].numbers[:2]
    down, up = (over_trees(seeds, field) for field in ("links_down", "links_up"))
    last, worst = down[PRINTED, 1024], max(down[WEIGHTED, t.nodes].most for t in TREES)
    upper = by_engine(up)
    claims = [
        value("down, pFTree-Wt: most of all trees", 0, worst, said=said["none"]),
        value("down, pFTree: mean, 1,024 nodes", mean, last.mean, NEAR, said=said["down"]),
        value("down, pFTree: most, 1,024 nodes", most, last.most, NEAR, said=said["down"]),
        claim(upper[WEIGHTED] > upper[PRINTED],
              "contended links up: pFTree-Wt as printed more than pFTree as printed on every tree",
              said=said["up"]),
    ]  # fmt: skip
    printed = {(PRINTED, 1024): mean, (WEIGHTED, 1024): 0.0}
    panels = [("down", down, "contended links down", printed), ("up", up, "contended links up", {})]
    return panels_outcome(claims, panels)


def pftree_fig15(seeds: Sequence[int]) -> Outcome:
    """The same experiments: interference."""
    said = quotes("pftree-fig15")
    plain, weighted = said["small"].numbers[:2]
    results = over_trees(seeds, "interference")
    few, many = ([results[e, n].mean for e in (PRINTED, WEIGHTED)] for n in (32, 1024))
    last = 100 * (many[1] / many[0] - 1) if many[0] else math.inf
    means = by_engine(results)
    claims = [
        claim(means[WEIGHTED] > means[PRINTED],
              "interference: pFTree-Wt as printed more than pFTree as printed on every tree",
              said=said["larger"]),
        value("32 nodes, pFTree", plain, few[0], NEAR, said=said["small"]),
        value("32 nodes, pFTree-Wt", weighted, few[1], NEAR, said=said["small"]),
        value("1,024 nodes: pFTree-Wt above pFTree, %", said["large"], last, NEAR),
    ]  # fmt: skip
    printed = {(PRINTED, 32): plain, (WEIGHTED, 32): weighted}
    panel = ("interference", results, "flows on links of both partitions", printed)
    return panels_outcome(claims, [panel])
