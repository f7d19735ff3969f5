"""Messages of several jobs in steps, and their links where each phase has a routing key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.routing.keys import choose_shift, key_tree, make_key
from sar_lab.fluid.flow_links import FlowLinks, flow_links_of
from sar_lab.fluid.flow_paths import link_rates
from sar_lab.fluid.flow_steps import Flows, flows_of_steps
from sar_lab.research.packets import PacketModel

MODEL = PacketModel()


def key_links(fabric: Fabric, jobs: Sequence[Sequence[I32]], flows: Flows) -> FlowLinks:
    """The links of messages with a routing key for each phase of each job, made in the order of
    jobs, and shifted (NRK) for what the keys before use."""
    tree = key_tree(fabric)
    load = np.zeros(fabric.channels, np.int64)
    ways: list[dict[tuple[int, int], list[int]]] = []
    for phases in jobs:
        most = np.zeros(fabric.channels, np.int64)
        ways.append({})
        for phase in phases:
            key = make_key(tree, [(phase[:, 0].copy(), phase[:, 1].copy())], shifted=True)
            shift = choose_shift(key, load)
            most = np.maximum(most, shift.own)
            for a, b, way in zip(key.source, key.destination, shift.channels, strict=True):
                ways[-1][int(a), int(b)] = [int(c) for c in way if c >= 0]
        load += most
    first, last = fabric.channels, fabric.channels + fabric.terminals
    path, link = [0], []
    for a, b, job in zip(flows.source, flows.destination, flows.job, strict=True):
        link += [first + int(a), *ways[job].get((int(a), int(b)), []), last + int(b)]
        path.append(len(link))
    ends = np.array(path, np.uint32)
    return flow_links_of(link_rates(fabric), ends, ends[1:].copy(), np.array(link, np.uint32))


def segment_gbit() -> float:
    return MODEL.segment_bytes * 8e-9


def segment_seconds(fabric: Fabric) -> float:
    """The time of a segment on a host's own link."""
    return segment_gbit() / float(fabric.terminal_rate.min())


def steps_of_jobs(jobs: Sequence[Sequence[I32]], segments: Sequence[float]) -> Flows:
    """The steps of all jobs, and the segments of each message of a job, which may be parts."""
    job = np.repeat(np.arange(len(jobs)), [len(steps) for steps in jobs])
    flows = flows_of_steps(
        [step for steps in jobs for step in steps],
        1.0,
        job=job,
        last=np.append(job[1:] != job[:-1], True),
    )
    return flows._replace(size=np.array(segments)[flows.job] * segment_gbit())
