"""The items that `sar-plus` places: what each leaf switch of a job sends to each destination."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I64, U8, U32, Bool
from sar_agent.jobs import JobMix
from sar_agent.jobs.demand import route_demand

Objective = Literal["load", "routes"]
CLASSES = 8
FULL_LOAD = 1 << 30
"""Integer units of load that a terminal sends at the fabric's fastest rate."""


class DemandItems(NamedTuple):
    """The jobs of each terminal, and the leaf switches from which each job sends."""

    root: U32
    """uint32[T]: leaf switch of each terminal."""
    last_port: U8
    """uint8[T]: the leaf's port to each terminal."""
    on_offset: U32
    """uint32[T + 1] into `on_job`: the jobs of each terminal."""
    on_job: U32
    leaf_offset: U32
    """uint32[J + 1] into `leaf`, `sources` and `item`; leaves with most sources come first."""
    leaf: U32
    sources: I64
    """int64[·]: how many terminals of the job are at that leaf."""
    item: I64
    """int64[·]: how much these send to each destination of the job, in units of load."""
    weight_class: U8
    """uint8[J]: 0 for the jobs with the heaviest routes, one more for each halving."""


def demand_items_of(fabric: Fabric, mix: JobMix, objective: Objective) -> DemandItems:
    """The items of a mix. Units do not depend on the other jobs, so that loads can be kept while
    jobs come and go."""
    offset, leaf, count = mix.by_leaf(fabric)
    job = np.repeat(np.arange(len(mix.jobs)), np.diff(offset))
    unit = np.ones(len(mix.jobs), np.int64)
    weight_class = np.zeros(len(mix.jobs), np.uint8)
    if objective == "load" and mix.jobs:
        share = route_demand(fabric, mix) / float(fabric.terminal_rate.max())
        unit = np.maximum(1, np.round(share * FULL_LOAD)).astype(np.int64)
        halvings = np.floor(-np.log2(np.minimum(1.0, share)) + 1e-9)
        weight_class = np.minimum(halvings, CLASSES - 1).astype(np.uint8)
    order = np.lexsort((leaf, -count, job))
    on_offset, on_job = mix.by_terminal(fabric.terminals)
    return DemandItems(
        root=fabric.terminal_switch.astype(np.uint32),
        last_port=fabric.terminal_switch_port.astype(np.uint8),
        on_offset=on_offset.astype(np.uint32),
        on_job=on_job.astype(np.uint32),
        leaf_offset=offset.astype(np.uint32),
        leaf=leaf[order].astype(np.uint32),
        sources=count[order].astype(np.int64),
        item=(count[order] * unit[job[order]]).astype(np.int64),
        weight_class=weight_class,
    )


def classes_on(work: DemandItems) -> Bool:
    """bool[T, CLASSES]: the weight classes of the jobs on each terminal."""
    on = np.zeros((len(work.root), CLASSES), np.bool_)
    terminal = np.repeat(np.arange(len(on)), np.diff(work.on_offset))
    on[terminal, work.weight_class[work.on_job]] = True
    return on
