"""Packet hops a minute of one core: `python -m tests.bench.packet_hops [SPEC] [SEGMENTS]`.

A random permutation and an all-to-all among all hosts under D-mod-k, in processor seconds, kernels
compiled before."""

from __future__ import annotations

import sys
import time

import numpy as np

from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_lab.fluid.flow_paths import routed_links
from sar_lab.fluid.flow_steps import Flows
from sar_lab.packets import PacketModel, packet_times


def main(spec: str, segments: int) -> None:
    """Prints a line for each pattern."""
    fabric = load_fabric(spec)
    routes = load_engine("dmodk").route(fabric, JobMix(()), Options())
    hosts = np.arange(fabric.terminals)
    shuffled = np.random.default_rng(0).permutation(hosts)
    apart = hosts[:, None] != hosts[None, :]
    for name, source, destination, each in (
        ("permutation", shuffled, np.roll(shuffled, 1), segments),
        ("all-to-all", *np.nonzero(apart), max(1, segments // fabric.terminals)),
    ):
        size = each * 8 * PacketModel.segment_bytes / 1e9
        count = len(source)
        flows = Flows(
            source.astype(np.uint32),
            destination.astype(np.uint32),
            np.full(count, size),
            np.zeros(count, np.uint32),
            np.zeros(count, np.uint32),
            np.ones(1, np.bool_),
            np.zeros(1),
        )
        links = routed_links(fabric, routes, flows)
        packet_times(links, flows._replace(size=np.full(count, size / each)))
        began = time.process_time()
        run = packet_times(links, flows)
        seconds = time.process_time() - began
        print(
            f"{name} on {spec}, {each} segments a message: {run.hops:,} hops in {seconds:.2f} s, "
            f"{60 * run.hops / seconds:.2e} a minute"
        )


if __name__ == "__main__":
    main(*(sys.argv[1:2] or ["xgft:3;6,6,6;1,6,6"]), int((sys.argv[2:3] or ["2000"])[0]))
