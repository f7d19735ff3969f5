"""`colored`: routes for a known pattern, a bound of what oblivious routes can achieve.

The method is that of routing keys (`digits.py`), but each pair of hosts has a route of its own,
which a table that knows destinations only cannot hold: so this is a bound of keys, too. For
permutations on k-ary n-trees there is one flow a channel at every level, the theorem behind
rearrangeable networks. On slimmed trees of several levels some flows turn below the top; the result
is reported with its bound.
"""

from __future__ import annotations

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8
from sar_agent.fabric.xgft_view import recognise_xgft
from sar_agent.jobs import JobMix
from sar_agent.routing.engine import Options
from sar_agent.routing.keys.digits import flow_digits
from sar_lab.fluid.path_routes import PathRoutes
from sar_lab.research.engines.by_source import BySource, phases


class Colored(BySource):
    """Knows the pattern; its routes need LMC to be installed."""

    name = "colored"
    summary = "XGFTs: least contention for a known --pattern; needs LMC (oblivious-xgft-2009, VII)"
    knows_jobs = True

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
