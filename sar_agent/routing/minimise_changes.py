"""Keeps old entries where they are as good as the new ones, so that few entries change.

An engine that starts from nothing breaks ties by current loads, so one more job changes entries in
two thirds of all trees, mostly without any gain. Here each changed tree gets its old entries back
if they still lead everywhere in as few hops, and if the most loaded channel on its jobs' routes is
no more loaded than with the new entries. So the largest load of all cannot rise. Trees that no job
uses always get their old entries back.

With `most`, the number of entries that may change, further trees get their old entries back, those
first that raise loads least, until few enough change: a site may prefer stable tables to the last
few per cent. O(items · hops), plus O(S · hops) for each tree that changed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, U8, U32
from sar_agent.jobs import JobMix
from sar_agent.routing.demand_items import DemandItems
from sar_agent.routing.engine import Options, PreviousRoutes
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.graph.next_hops import NextHops, next_hops_of
from sar_agent.routing.graph.shortest_path_dag import new_cache
from sar_agent.routing.job_loads import ADD, KEEP, REMOVE, JobLoads, Paths, carry_tree
from sar_agent.routing.repair import same_indices
from sar_agent.routing.routes import Routes
from sar_agent.util.kernels import kernel, kernel_part


def keep_unchanged_rows(
    before: PreviousRoutes,
    fabric: Fabric,
    mix: JobMix,
    routes: Routes,
    options: Options,
    most: int | None = None,
) -> Routes:
    """`routes` (offset 0 only) with the trees of `before` that are as good. Lanes are not
    considered: the result must be checked like any other."""
    if not same_indices(before.fabric, fabric) or before.routes.egress.shape != routes.egress.shape:
        return routes
    egress, old = routes.egress[0].copy(), before.routes.egress[0]
    loads = JobLoads(fabric, graph_of(fabric), new_cache(fabric), mix, options.objective)
    loads.carry(egress, loads.terminals)
    hops, up = next_hops_of(fabric, live=True), np.flatnonzero(fabric.switch_up).astype(np.uint32)
    last = fabric.destination_port
    harm = _restore_rows(hops, loads.paths, loads.work, up, last, old, egress)
    if most is not None:
        changed = np.count_nonzero(egress != old, axis=1)
        left = int(changed.sum())
        for d in np.argsort(harm, kind="stable"):
            if left <= most or np.isinf(harm[d]):
                break
            left -= int(changed[d])
            egress[d] = old[d]
    return replace(routes, egress=egress[None], mark=0)


@kernel
def _restore_rows(
    hops: NextHops, paths: Paths, work: DemandItems, up: U32, last: U8, old: U8, egress: U8
) -> F64:  # pragma: no cover
    """Gives trees their old rows where these are no worse. Returns float64[D]: the largest load
    on the old tree of each that did not get it back; infinite where it could not, or already has
    it.

    `up` uint32[·]: the switches that are up; `last` uint8[D]: a destination's port at its
    switch."""
    harm = np.full(len(egress), np.inf)
    for d in range(len(egress)):
        new, kept, root = egress[d], old[d], hops.root[d]
        if not (kept != new).any() or kept[root] != last[d]:
            continue
        if not _as_short(hops, up, kept, new, root):
            continue
        if d < len(work.root):  # jobs send to terminals only
            present = carry_tree(paths, work, d, new, KEEP)
            carry_tree(paths, work, d, new, REMOVE)
            most = carry_tree(paths, work, d, kept, ADD)
            if most > present * (1 + 1e-9):
                carry_tree(paths, work, d, kept, REMOVE)
                carry_tree(paths, work, d, new, ADD)
                harm[d] = most
                continue
        egress[d] = kept
    return harm


@kernel_part
def _as_short(
    hops: NextHops, up: U32, old: U8, new: U8, root: np.uint32
) -> bool:  # pragma: no cover
    """Whether the old tree leads from every switch to `root` in no more hops than the new one."""
    channels = len(hops.target)
    for s in up:
        v, w = s, s
        while w != root:
            before, after = hops.channel_by_port[v, old[v]], hops.channel_by_port[w, new[w]]
            if v == root or before >= channels or after >= channels:
                return False
            v, w = hops.target[before], hops.target[after]
        if v != root:
            return False
    return True
