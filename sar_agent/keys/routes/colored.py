"""`colored`: routes for a known pattern, a bound of what oblivious routes can achieve.

The method is that of routing keys (`digits.py`), but each pair of hosts has a route of its own,
which a table that knows destinations only cannot hold: so this is a bound of keys, too. For
permutations on k-ary n-trees there is one flow a channel at every level, the theorem behind
rearrangeable networks. On slimmed trees of several levels some flows turn below the top; the result
is reported with its bound.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8
from sar_agent.fabric.xgft_view import recognise_xgft
from sar_agent.jobs import JobMix
from sar_agent.jobs.patterns import phases_of
from sar_agent.keys.routes.digits import flow_digits
from sar_agent.keys.routes.key import subtree_bound
from sar_agent.routing.engine import Options
from sar_agent.routing.path_routes import PathRoutes
from sar_agent.routing.routes import Routes


class PatternContention(NamedTuple):
    """The contention of one phase."""

    flows: int
    """The most flows of the phase on a channel between switches."""
    bound: int
    """A lower bound for any routes: flows that leave or enter a subtree over its channels."""


class Colored:
    """Knows the pattern; its routes need LMC to be installed."""

    name = "colored"
    summary = "XGFTs: least contention for a known --pattern; needs LMC (oblivious-xgft-2009, VII)"
    knows_jobs = True
    by_source = True

    def paths(self, fabric: Fabric, mix: JobMix, options: Options) -> PathRoutes:
        """Raises `Unserved` where the fabric is no XGFT, `InputError` without a pattern and where
        the pattern does not fit a job. A pair that several phases have keeps its first route."""
        if not options.pattern:
            raise InputError("colored needs a traffic pattern", remedy="try --pattern shift:1")
        view = recognise_xgft(fabric)
        known: dict[int, bytes] = {}
        for source, destination in phases(fabric, mix, options.pattern):
            once = np.zeros(len(source), np.int32)
            colours = flow_digits(fabric, view, source, destination, once, merged=False)
            pairs = source.astype(np.int64) * fabric.terminals + destination
            for pair, digits in zip(pairs.tolist(), colours, strict=True):
                known.setdefault(pair, digits.tobytes())
        keys = np.array(sorted(known), np.int64)
        values = np.frombuffer(b"".join(known[k] for k in keys.tolist()), np.uint8)
        digits = values.reshape(len(keys), view.height - 1)
        usual = np.array(view.w[1:], np.int32)

        def choose(source: I32, destination: I32) -> U8:
            """Pairs in no phase take the routes of dmodk."""
            chosen = (view.digit[destination, :-1] % usual).astype(np.uint8)
            pair = source.astype(np.int64) * fabric.terminals + destination
            place = np.minimum(np.searchsorted(keys, pair), max(0, len(keys) - 1))
            is_known = keys[place] == pair if len(keys) else np.zeros(len(pair), np.bool_)
            chosen[is_known] = digits[place[is_known]]
            return chosen

        return PathRoutes(self.name, fabric, view, choose)

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """A table for each root; raises `Unserved`, too, where `options.lmc` gives too few."""
        began = time.perf_counter()
        routes = self.paths(fabric, mix, options).as_tables(options.lmc)
        return Routes(self.name, fabric.digest, routes.egress, seconds=time.perf_counter() - began)


def phases(fabric: Fabric, mix: JobMix, pattern: str) -> list[tuple[I32, I32]]:
    """(sources, destinations) of each phase of the pattern, in all jobs at once."""
    of_jobs = [phases_of(pattern, fabric, job) for job in mix.jobs]
    all_phases = []
    for i in range(max(map(len, of_jobs), default=0)):
        parts = [of_job[i] for of_job in of_jobs if i < len(of_job)]
        all_phases.append(
            (np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts]))
        )
    return all_phases


def contention(paths: PathRoutes, source: I32, destination: I32) -> PatternContention:
    """The contention of the flows source → destination (int32[N] each) on their routes."""
    channels = paths.channels(source, destination)
    count = np.bincount(channels[channels >= 0], minlength=1)
    leaf = paths.fabric.terminal_switch
    bound = subtree_bound(paths.view, leaf[source], leaf[destination])
    return PatternContention(int(count.max()), bound)
