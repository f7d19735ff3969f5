"""The template: tables that depend on the fabric alone, which `sar-plus` makes exceptions to.

D-mod-k (`dmodc.py`) serves fat trees, whole or degraded, and is free of contention in shifts over
whole leaves. Where it refuses, or where `dfsssp` balances all pairs better, as on trees with
several kinds of leaves, the template is that of `dfsssp` without jobs. Where D-mod-k loads some
channels twice, there is a second template, rotated (`rotations.py`), unless `dfsssp` is better.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8
from sar_agent.fabric.tree import tree_levels
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing.demand_items import Objective
from sar_agent.routing.dfsssp import dfsssp_trees
from sar_agent.routing.dmodc import closed_form_trees
from sar_agent.routing.engine import Options
from sar_agent.routing.graph.csr import Graph, graph_of
from sar_agent.routing.graph.shortest_path_dag import DagCache
from sar_agent.routing.job_loads import JobLoads
from sar_agent.routing.lane_guard import choice_may_loop
from sar_agent.routing.repair import same_indices
from sar_agent.routing.rotations import rotations
from sar_agent.routing.updn import Ftree

EVEN = 1.05
"""Times the least possible load: D-mod-k that is as good is not compared with `dfsssp`."""


class Template(NamedTuple):
    """Tables for one fabric, and the paths to which exceptions keep."""

    fabric: Fabric
    graph: Graph
    egress: U8
    """uint8[T + S, S], not to be changed."""
    cache: DagCache
    """The paths among which entries may be chosen: those of the tables are among them."""
    may_loop: bool = False
    """Whether a choice of them closes a credit loop between hosts, which the tables do not."""


_kept: list[tuple[Template, ...]] = []
"""Those of the last fabrics, the latest last."""
KEPT = 2


def template_of(fabric: Fabric) -> Template:
    """The first template of a fabric, which the tables are without jobs."""
    return templates_of(fabric)[0]


def templates_of(fabric: Fabric) -> tuple[Template, ...]:
    """One or two templates. They are made once, and kept while the last fabrics are in use."""
    for templates in _kept:
        known = templates[0].fabric
        if known is fabric or (known.digest == fabric.digest and same_indices(known, fabric)):
            return templates
    templates = _made(fabric)
    _kept[:] = [*_kept[1 - KEPT :], templates]
    return templates


def tables_without_jobs(fabric: Fabric) -> tuple[U8, ...]:
    """uint8[T + S, S] of each template, and of `ftree` where it serves: no collective is to take
    longer than on the best of them."""
    templates = templates_of(fabric)
    return *(each.egress for each in templates), *_ftree_tables(templates[0].fabric)


@lru_cache(maxsize=KEPT)
def _ftree_tables(fabric: Fabric) -> tuple[U8, ...]:
    """One uint8[T + S, S]; none where it refuses."""
    try:
        return tuple(Ftree().route(fabric, JobMix(()), Options()).egress)
    except Unserved:
        return ()


def nearest_template(fabric: Fabric, egress: U8) -> Template:
    """The template from which fewer of these entries differ; the first of equals.

    **Weak spot:** tables of which many entries differ from both could be taken for the other's.
    Entries of two templates may close a credit loop, which the check then finds.
    """
    templates = templates_of(fabric)
    if len(templates) == 1:
        return templates[0]
    return min(templates, key=lambda each: int(np.count_nonzero(each.egress != egress)))


def _made(fabric: Fabric) -> tuple[Template, ...]:
    graph = graph_of(fabric)
    everyone = JobMix((make_job("all", np.flatnonzero(fabric.is_host_port)),))
    spread: tuple[Template, ...] = ()
    load = [np.inf]
    with suppress(Unserved):
        rotation = rotations(fabric, graph)
        turns = (None,) if rotation is None else (None, rotation)
        spread = tuple(Template(fabric, graph, *closed_form_trees(fabric, graph, t)) for t in turns)
        if _is_even(fabric):
            return spread
        loads = [loads_on(each, everyone, "load", each.egress) for each in spread]
        load = [each.peak() for each in loads]
        if load[0] <= EVEN * float(loads[0].least_loads().max()):
            return spread
    trees = dfsssp_trees(fabric, graph)
    even = Template(fabric, graph, *trees, choice_may_loop(fabric, graph, *trees))
    peak = loads_on(even, everyone, "load", even.egress).peak()
    if spread and load[0] <= peak:
        return spread
    return (even, *(spread[1:] if load[-1] <= EVEN * peak else ()))


def _is_even(fabric: Fabric) -> bool:
    """Whether all switches of a level have as many channels up and down, and leaves as many hosts:
    then D-mod-k is even, too."""
    level = tree_levels(fabric)
    source, target = fabric.channel_source, fabric.channel_target
    live, rises = fabric.channel_up, level[target] > level[source]
    counts = [np.bincount(source[live & way], minlength=fabric.switches) for way in (rises, ~rises)]
    alike = np.stack([level, fabric.terminals_at, *counts], axis=1)
    return len(np.unique(alike, axis=0)) == int(level.max(initial=0)) + 1


def loads_on(template: Template, mix: JobMix, objective: Objective, egress: U8) -> JobLoads:
    """The loads of a mix on these tables."""
    loads = JobLoads(template.fabric, template.graph, template.cache, mix, objective)
    loads.carry(egress, loads.terminals)
    return loads
