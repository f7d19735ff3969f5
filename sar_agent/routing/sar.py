"""SAR: scheduling-aware DFSSSP (Domke & Hoefler, SC16, Algorithm 1).

Destinations of running jobs come first, those of the largest job first of all, and only routes
inside a job raise channel weights; then storage, then all other terminals, whose weights count
every route as DFSSSP does. The paper leaves ties open; ours are (leaf switch GUID, port GUID), so
the same fabric and mix give the same bytes whatever order they were read in.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric, Kind
from sar_agent.fabric.model import I32, U8
from sar_agent.jobs import JobMix
from sar_agent.routing.engine import Options, PreviousRoutes
from sar_agent.routing.minimise_changes import keep_unchanged_rows
from sar_agent.routing.routes import Routes
from sar_agent.routing.weighted_trees import EVERYONE, JOB, grow_trees


class Sar:
    """Balances the routes inside running jobs, as in sar-2016."""

    name = "sar"
    summary = "scheduling-aware DFSSSP: balances only routes inside running jobs (sar-2016, Alg. 1)"
    knows_jobs = True

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Routes for every fabric; the check decides whether one virtual lane is enough."""
        order, count = destination_order(fabric, mix)
        egress = grow_trees(fabric, mix, order, count)
        return Routes(
            engine=self.name,
            fabric_digest=fabric.digest,
            egress=egress[None],
            jobs_digest=mix.digest(fabric),
        )

    def reroute(
        self, before: PreviousRoutes, fabric: Fabric, mix: JobMix, options: Options
    ) -> Routes:
        """The paper's routes, but those of `before` wherever they are as good."""
        return keep_unchanged_rows(before, fabric, mix, self.route(fabric, mix, options), options)


def destination_order(fabric: Fabric, mix: JobMix) -> tuple[I32, U8]:
    """(int32[·] terminals, uint8[·] whose routes count): Algorithm 1, lines 5, 11 and 14.

    Compute terminals sort by the size of the largest job on them, descending; a compute terminal
    without a job is of size 0 and raises no weight (its job list is empty). A storage or
    other terminal that runs a job is treated as compute.
    """
    size = np.zeros(fabric.terminals, np.int64)
    for job in mix.jobs:
        np.maximum.at(size, job.terminals, len(job.terminals))
    compute = (fabric.terminal_kind == Kind.COMPUTE) | (size > 0)
    stage = np.where(compute, 0, np.where(fabric.terminal_kind == Kind.STORAGE, 1, 2))
    leaf = fabric.switch_guid[fabric.terminal_switch]
    order = np.lexsort((fabric.terminal_guid, leaf, -size, stage))
    order = order[fabric.is_host_port[order]]
    return order.astype(np.int32), np.where(compute[order], JOB, EVERYONE).astype(np.uint8)
