"""Virtual lanes for partitions that share links (pftree-2016, Algorithm 5, with corrected
branches).

A `vlane` partition that shares a link between switches with one that has no lane of its own gets
one; all others travel in lane 0. If lanes run out, mode `strict` fails; `best-effort` starts again
at lane 1 and warns. Legal paths close no cycle, so no lane is needed against deadlock.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sar_agent.errors import CheckFailed
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8, U32, Bool
from sar_agent.jobs.partitions import Partitions, Policy
from sar_agent.routing.engine import Options
from sar_agent.routing.graph.next_hops import NextHops, next_hops_of
from sar_agent.routing.routes import Routes
from sar_agent.util.kernels import kernel


def partition_lanes(
    fabric: Fabric, routes: Routes, partitions: Partitions, options: Options
) -> tuple[Routes, list[str]]:
    """The routes with service levels, and warnings. Raises `CheckFailed` where strict."""
    uses = links_used(fabric, routes, partitions)
    isolation = partitions.isolation
    lane = np.zeros(len(partitions.parts) + 1, np.uint8)
    given: dict[int, int] = {}
    sharing = []
    for i, part in enumerate(partitions.parts):
        if part.policy is not Policy.VLANE:
            continue
        group = int(isolation[i])
        if group not in given:
            own_links = uses[:-1][isolation == group].any(axis=0)
            in_lane_0 = ~np.isin(isolation, [group, *given])
            others = uses[np.append(in_lane_0, True)].any(axis=0)
            if not (own_links & others).any():
                continue
            wanted = len(set(given.values())) + 1
            if wanted >= options.max_lanes:
                if partitions.strict:
                    raise CheckFailed(
                        f"partition {part.name} needs a virtual lane of its own, but there are "
                        f"{options.max_lanes}, one of them for the others; mode best-effort would "
                        "share lanes"
                    )
                wanted = 1 + len(given) % max(1, options.max_lanes - 1)
                sharing.append(part.name)
            given[group] = wanted if options.max_lanes > 1 else 0
        lane[i] = given[group]
    warnings = []
    if sharing:
        shown = ", ".join(sharing[:3]) + (", …" if len(sharing) > 3 else "")
        warnings.append(
            f"{len(sharing)} partitions share a virtual lane with others, since there are "
            f"{options.max_lanes}: {shown}"
        )
    lanes = int(lane.max()) + 1
    if lanes == 1:
        return routes, warnings
    home = partitions.of_terminal(fabric.terminals)
    level = np.zeros_like(routes.egress)
    level[0, : fabric.terminals] = lane[home][:, None]
    return replace(routes, service_level=level, virtual_lanes=lanes), warnings


def links_used(fabric: Fabric, routes: Routes, partitions: Partitions) -> Bool:
    """bool[P + 1, C]: the channels that carry routes between members of each partition; the last
    row is for terminals in no partition, from and to everywhere."""
    home = partitions.of_terminal(fabric.terminals)
    alone = np.flatnonzero(fabric.is_host_port & (home < 0)).astype(np.int32)
    members = [p.terminals[fabric.is_host_port[p.terminals]] for p in partitions.parts]
    leaves = [np.unique(fabric.terminal_switch[ports]) for ports in members]
    used = np.zeros((len(members) + 1, fabric.channels), np.bool_)
    for row, dests in enumerate([*members, alone]):
        sources = leaves[row] if row < len(leaves) else fabric.leaves
        ends = dests.astype(np.uint32), sources.astype(np.uint32)
        _mark(next_hops_of(fabric), routes.egress[0], *ends, used[row])
    return used


@kernel
def _mark(
    ways: NextHops, egress: U8, dests: U32, leaves: U32, used: Bool
) -> None:  # pragma: no cover
    """Marks in `used` bool[C] the channels on paths from `leaves` to `dests`; tables must not
    loop."""
    last = np.full(egress.shape[1], -1, np.int64)  # the last destination whose path passed here
    for d in dests:
        root = ways.root[d]
        for leaf in leaves:
            v = leaf
            while v != root and last[v] != d:
                last[v] = d
                c = ways.channel_by_port[v, egress[d, v]]
                used[c] = True
                v = ways.target[c]
