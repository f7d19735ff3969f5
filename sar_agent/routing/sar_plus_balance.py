"""The load balance of one fabric's job routes: tables, loads, and local search to improve them.

The heaviest items are placed first (longest processing time first, R. L. Graham 1969): the light
ones then fill the gaps. Each of the two routes of a two-host job takes a whole link, each of the
4,032 routes of a 64-host job a sixty-third. In the opposite order two-host jobs come last and find
every link four fifths full (largest load 1.9 instead of 1.02 on full trees, all else equal).

Then the most loaded channels are relieved: of the paths that cross them, the lightest first, each
is placed again while its channel is still too full. Where that does not help, the trees are removed
together and grown again, heaviest first. A move that did not help is undone.
"""

from __future__ import annotations

from collections import Counter
from copy import copy

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric.model import F64, U8, U32
from sar_agent.jobs import JobMix
from sar_agent.routing.balanced_trees import place_trees, relieve
from sar_agent.routing.channel_loads import ChannelLoads, carry_trees, count_for_class
from sar_agent.routing.demand_items import (
    CLASSES,
    FULL_LOAD,
    DemandItems,
    Objective,
    classes_on,
    demand_items_of,
)
from sar_agent.routing.graph.csr import Graph
from sar_agent.routing.graph.shortest_path_dag import DagCache, new_cache
from sar_agent.routing.hot_channels import trees_over
from sar_agent.routing.pending_paths import AGAIN, PathScratch, scratch_for
from sar_agent.routing.shortest_paths import ShortestPaths
from sar_agent.routing.trees_in_halves import LIGHT, MANY, place_in_halves

ROUTES_SHARE = 1 / 1024
"""With objective `routes` all channels have this share; it only keeps prices in range."""
HOT_CHANNELS = 64
GOOD_ENOUGH = 1.025
"""Times the least possible largest load: a peak below that is not worth more time."""
DARK_WORTH = 1.02
"""How many times the largest load may become for less dark fiber."""
FEW, OTHERS = 1 / 1024, 0.95
"""Where this share of all channels, or fewer, are far above all others, as after a failure, they
are relieved down to these: others have less than `OTHERS` times the peak."""
MOVES = (("paths", 0.97), ("trees", 0.995), ("in turn", 0.0))
"""The moves, cheapest first: place again, one at a time, the paths that cross a channel at least
that near the peak; remove the whole trees over such channels together and grow them again; or do so
with every tree, one at a time."""
PATHS_EACH = 16
"""Paths that are placed again one at a time count as so many times fewer items."""
SHUFFLES = 100
"""After these moves, while items are left (on small fabrics): half of the trees over hot channels
in random order, because heaviest first is a good order but not always the best."""


class RouteBalance:
    """Tables `egress` uint8[T + S, S] whose job paths carry `loads`; both change in place.

    `counted` tells whether the loads are those of the tables, as of tables without routes; if not,
    they are counted when first needed.
    """

    def __init__(
        self,
        shortest: ShortestPaths,
        mix: JobMix,
        egress: U8,
        objective: Objective,
        cache: DagCache | None = None,
        *,
        counted: bool = True,
    ) -> None:
        self.shortest, self.egress, self.objective = shortest, egress, objective
        self.counted = counted
        fabric = self.fabric = shortest.fabric
        self.graph = shortest.graph
        self.cache = cache or new_cache(fabric)
        self.by_port = fabric.channel_by_port.astype(np.uint32)
        channels = max(1, fabric.channels)
        share = np.full(channels, ROUTES_SHARE, np.float32)
        if objective == "load":
            rate = fabric.channel_rate.astype(np.float64) / float(fabric.terminal_rate.max())
            share[: fabric.channels] = 1 / (rate * FULL_LOAD)
        self.share = share
        self.units = np.zeros((CLASSES if objective == "load" else 1, channels), np.int64)
        self.scratch = scratch_for(self.cache, fabric.switches, len(self.units))
        self.use(mix)

    def use(self, mix: JobMix) -> None:
        """Takes another mix; loads stay as they are."""
        self.mix, self.work = mix, demand_items_of(self.fabric, mix, self.objective)
        self.classes = classes_on(self.work)
        mean = float(self.work.item.mean()) if len(self.work.item) else 0.0
        channels = len(self.share)
        self.loads = ChannelLoads(
            units=self.units,
            share=self.share,
            counted=np.zeros(channels, np.int64),
            price=np.zeros(channels, np.float32),
            half_item=np.float32(0.5 * mean * float(self.share.mean())),
            first_use=np.float32(0),
        )
        self.terminals = self._in_order(self.mix.terminal)

    def _in_order(self, terminals: NDArray[np.integer]) -> U32:
        """The terminals that have jobs, each once: heaviest items first, which means small jobs
        first (with objective `routes`, where all items weigh the same, large jobs first), then by
        GUID."""
        fabric, work = self.fabric, self.work
        unique = np.unique(terminals)
        unique = unique[work.on_offset[unique + 1] > work.on_offset[unique]]
        size = np.diff(self.mix.offset) * (1 if self.objective == "load" else -1)
        first_job = work.on_job[work.on_offset[unique]] if len(unique) else unique
        leaf_guid = fabric.switch_guid[fabric.terminal_switch[unique]]
        heaviest = self.classes[unique].argmax(axis=1)
        keys = (fabric.terminal_guid[unique], leaf_guid, size[first_job], heaviest)
        ordered: U32 = unique[np.lexsort(keys)].astype(np.uint32)
        return ordered

    @property
    def load(self) -> F64:
        """float64[C]: load as a share of each channel (routes / 1024 with objective `routes`)."""
        return np.asarray(self.units.sum(axis=0) * self.share.astype(np.float64), np.float64)

    def beside(self, egress: U8) -> RouteBalance:
        """The balance of the tables `egress` for the same jobs; this one stays as it is."""
        other = copy(self)
        other.egress, other.units = egress, np.zeros_like(self.units)
        channels = len(self.share)
        other.loads = self.loads._replace(
            units=other.units,
            counted=np.zeros(channels, np.int64),
            price=np.zeros(channels, np.float32),
        )
        other.put_back(other.terminals)
        return other

    def count(self) -> None:
        """Counts the loads of the tables, unless they are known already."""
        if not self.counted:
            self.units[:] = 0
            self.put_back(self.terminals)
            self.counted = True

    def lift(self, terminals: U32) -> None:
        """Removes the load of these terminals' trees."""
        self._carry(terminals, -1)

    def put_back(self, terminals: U32) -> None:
        """Adds the load of these terminals' trees as the tables have them."""
        self._carry(terminals, 1)

    def follow(self, mix: JobMix, items: int = 0, in_turn: int = 0) -> None:
        """Places the trees of jobs that started or ended again; then improves the balance."""
        if mix is self.mix:
            self.improve(items, in_turn)
            return
        jobs = {job.key: job for job in (*self.mix.jobs, *mix.jobs)}
        # Counted, because several jobs may share all their nodes.
        before, after = (Counter(job.key for job in each.jobs) for each in (self.mix, mix))
        if before == after:
            self.improve(items, in_turn)
            return
        self.count()
        changed = [jobs[key].terminals for key in jobs if before[key] != after[key]]
        touched = np.unique(np.concatenate([np.empty(0, np.int32), *changed])).astype(np.uint32)
        self.lift(touched)
        self.use(mix)
        self.place(touched)
        self.improve(items, in_turn)

    def _carry(self, terminals: U32, sign: int) -> None:
        carry_trees(self.graph, self.by_port, self.work, self.loads, self.egress, terminals, sign)

    def place(self, terminals: U32) -> None:
        """Grows the trees of these terminals, heaviest first."""
        self._place(self._in_order(terminals))

    def _place(self, terminals: U32) -> None:
        classes = self.classes[terminals]
        for weight_class in np.flatnonzero(classes.any(axis=0)).tolist():
            count_for_class(self.loads, weight_class)
            trees = terminals[classes[:, weight_class]]
            light = weight_class >= LIGHT and self.objective == "load"
            if light and len(trees) >= MANY:
                place_in_halves(*self._parts, trees, weight_class, self.egress)
            else:
                self._place_trees(trees, weight_class)

    def _place_again(self, terminals: U32) -> None:
        """Removes each terminal's tree in turn and grows it again beside all others."""
        lightest = CLASSES - 1 - self.classes[terminals, ::-1].argmax(axis=1)
        for weight_class in np.unique(lightest).tolist():
            count_for_class(self.loads, weight_class)
            self._place_trees(terminals[lightest == weight_class], AGAIN)

    def _relieve(self, terminals: U32, most: float) -> int:
        """Places again, lightest first, the paths that still cross a channel with a load above
        `most` when their turn comes; how many these were."""
        count_for_class(self.loads, CLASSES - 1)
        return relieve(*self._parts, terminals[::-1].copy(), most, self.egress)

    def _place_trees(self, terminals: U32, turn: int) -> None:
        place_trees(*self._parts, terminals, turn, self.egress)

    @property
    def _parts(self) -> tuple[Graph, DagCache, U32, DemandItems, ChannelLoads, PathScratch]:
        return self.graph, self.cache, self.by_port, self.work, self.loads, self.scratch

    def score(self, load: F64 | None = None) -> tuple[float, float]:
        """The largest load, then how near other channels are to it. Less is better. `load` where
        that of all channels is known."""
        load = self.load if load is None else load
        peak = float(load.max(initial=0.0))
        near = load[load > 0.8 * peak]  # to the 16th power, lower loads count next to nothing
        return round(peak, 6), float(((near / (peak or 1.0)) ** 16).sum())

    def least_peak(self) -> float:
        """A lower bound of the largest load. All traffic between a leaf's terminals and other
        leaves must cross the leaf's own channels, and traffic to one terminal crosses only one of
        them."""
        work, switches = self.work, self.fabric.switches
        others = np.repeat(np.diff(self.mix.offset), np.diff(work.leaf_offset).astype(np.int64))
        leaving = np.bincount(work.leaf, work.item * (others - work.sources), switches)
        live = self.fabric.channel_up
        capacity = np.bincount(
            self.fabric.channel_source[live], 1.0 / self.share[: len(live)][live], switches
        )
        loads = np.divide(leaving, capacity, out=np.zeros(switches), where=capacity > 0)
        item = float(work.item.max(initial=0)) * float(self.share[: len(live)][live].min(initial=1))
        return max(item, float(loads.max(initial=0.0)))

    def improve(self, items: int, in_turn: int = 0) -> None:
        """Tries `MOVES`, from the first again after each one that helped, until no move helps, the
        largest load is within `GOOD_ENOUGH`, or `items` items (routes from a leaf to a destination;
        each try also costs one for every eight channels) were placed. `in_turn` are more items, for
        all trees in turn. Never ends worse than it began.
        """
        if items <= 0:
            return
        self.count()
        good_enough = GOOD_ENOUGH * self.least_peak()
        load = self.load
        best = self.score(load)
        random = np.random.default_rng(0)  # fixed, so that results are the same
        failures = 0
        over: dict[bytes, U32] = {}  # since the last move that helped: hot channels → trees, …
        tried: set[tuple[str, bytes]] = set()  # … and the moves, which would only fail again
        while items > 0 and failures < len(MOVES) + SHUFFLES and best[0] > good_enough:
            what, nearly = MOVES[failures] if failures < len(MOVES) else ("shuffle", 0.97)
            failures += 1
            items -= len(self.share) // 8
            near = nearly * best[0]
            if what == "paths":
                most = max(good_enough, _below_few(load, near))
                hot = np.flatnonzero(load > most)
            else:
                hot = _hot(load, near, good_enough)
            key = hot.tobytes()
            if what == "in turn":
                trees = self.terminals
            elif key in over:
                trees = over[key]
            else:
                trees = over[key] = self._crossing(hot)
            cost = len(trees) if what == "paths" else self._items(trees)
            if what == "in turn" and cost <= in_turn:
                in_turn -= cost
                cost = 0
            if cost > items:
                if what == "shuffle":
                    break  # all that follow would cost as much
                continue
            items -= cost
            if (what, key) in tried:
                continue
            if what != "shuffle":
                tried.add((what, key))
            saved = self.egress[trees], self.units.copy()
            if what == "paths":
                items -= self._relieve(trees, most) // PATHS_EACH
            elif what == "trees":
                self.lift(trees)
                self._place(trees)
            elif what == "shuffle":
                half = random.permutation(trees)[: 1 + len(trees) // 2]
                self.lift(half)
                for terminal in half:
                    self._place(np.array([terminal]))
            else:
                self._place_again(trees)
            now = self.load
            score = self.score(now)
            if score < best:
                best, load, failures = score, now, 0
                over.clear()
                tried.clear()
            else:
                self.egress[trees], self.units[:] = saved

    def _items(self, terminals: U32) -> int:
        """How many paths these terminals' trees have: jobs at one leaf share one path."""
        before = np.append(0, np.diff(self.work.leaf_offset)[self.work.on_job].cumsum())
        on = self.work.on_offset
        paths = before[on[terminals + 1]] - before[on[terminals]]
        return int(np.minimum(paths, len(self.fabric.leaves)).sum())

    @property
    def dark(self) -> int:
        """Live channels that carry no route of a job."""
        used = self.units[:, : self.fabric.channels].any(axis=0)
        return int((self.fabric.channel_up & ~used).sum())

    def reduce_dark_fiber(self, dark: int, most: float) -> None:
        """Moves paths to unused channels until no more than `dark` are left unused, as long as that
        raises the largest load at most `DARK_WORTH` times, and not above `most`, the peak of
        others."""
        loads, peak = self.loads, self.score()[0]
        most = max(peak, min(DARK_WORTH * peak, most))
        for worth in (1e-4, 1e-2, 1.0):
            if self.dark <= dark:
                break
            saved = self.egress[self.terminals], self.units.copy(), self.dark
            self.loads = loads._replace(first_use=np.float32(worth * peak**5))
            self._place_again(self.terminals)
            if self.score()[0] > most or self.dark >= saved[2]:
                self.egress[self.terminals], self.units[:] = saved[:2]
        self.loads = loads

    def _crossing(self, hot: NDArray[np.intp]) -> U32:
        """The terminals whose trees cross one of these channels, heaviest first."""
        is_hot = np.zeros(len(self.share), np.bool_)
        is_hot[hot] = True
        crossing = trees_over(
            self.graph,
            self.by_port,
            self.work,
            self.shortest.hops,
            self.egress,
            self.terminals,
            is_hot,
            np.unique(self.fabric.channel_source[hot]).astype(np.uint32),
        )
        return self.terminals[crossing]


def _below_few(load: F64, near: float) -> float:
    """The load of the channels below the few that are far above all others; else `near`."""
    rank = len(load) - 1 - int(FEW * len(load))
    others = float(np.partition(load, rank)[rank])
    return others if others < OTHERS * float(load.max()) else near


def _hot(loads: F64, load: float, good_enough: float) -> NDArray[np.intp]:
    """The most loaded channels: all above `good_enough` if these are few, else those with at least
    `load`."""
    hot = np.flatnonzero(loads > good_enough)
    if len(hot) > HOT_CHANNELS:
        hot = np.flatnonzero(loads >= load)
    return hot[np.argsort(-loads[hot], kind="stable")][:HOT_CHANNELS]
