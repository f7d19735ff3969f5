"""The same questions answered slowly: plain Python, dictionaries, networkx."""

from __future__ import annotations

import itertools
from collections import defaultdict

import networkx as nx
import numpy as np

from sar_agent.fabric import Fabric, Kind
from sar_agent.jobs import JobMix
from sar_agent.routing import Routes


def live_graph(fabric: Fabric) -> nx.MultiDiGraph:
    """Switches and live channels (edge key: channel)."""
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(fabric.switches))
    for c in range(fabric.channels):
        if fabric.channel_up[c]:
            a, b = int(fabric.channel_source[c]), int(fabric.channel_target[c])
            graph.add_edge(a, b, key=c)
    return graph


def path(fabric: Fabric, routes: Routes, switch: int, destination: int) -> list[int] | None:
    """Channels from a switch to the last switch before a destination; None if it never comes."""
    root = int(fabric.destination_switch[destination])
    channels: list[int] = []
    while switch != root:
        port = int(routes.egress[0, destination, switch])
        out = [
            c
            for c in range(fabric.channel_offset[switch], fabric.channel_offset[switch + 1])
            if fabric.channel_port[c] == port and fabric.channel_up[c]
        ]
        if not out or len(channels) > fabric.switches:
            return None
        channels.append(out[0])
        switch = int(fabric.channel_target[out[0]])
    last = int(routes.egress[0, destination, root])
    return channels if last == int(fabric.destination_port[destination]) else None


def has_credit_loop(fabric: Fabric, routes: Routes) -> bool:
    """Between host ports, one lane, by networkx."""
    hosts = [t for t in range(fabric.terminals) if fabric.is_host_port[t]]
    graph = nx.DiGraph()
    for source in hosts:
        for destination in hosts:
            way = path(fabric, routes, int(fabric.terminal_switch[source]), destination) or []
            graph.add_edges_from(itertools.pairwise(way))
    return not nx.is_directed_acyclic_graph(graph)


def effective_efi(fabric: Fabric, mix: JobMix, routes: Routes) -> list[int]:
    """Definition 7, pair by pair."""
    found = [0] * fabric.channels
    for job in mix.jobs:
        for source in job.terminals:
            for destination in job.terminals:
                if source != destination:
                    start = int(fabric.terminal_switch[source])
                    for c in path(fabric, routes, start, int(destination)) or []:
                        found[c] += 1
    return found


def algorithm_1(fabric: Fabric, mix: JobMix) -> dict[int, dict[int, int]]:
    """SAR as the paper prints it: terminal -> switch -> channel, for switches that hosts cross.

    Dijkstra with (hops, weight) as distance; ties by lowest port, order ties by leaf, GUID.
    """
    graph = live_graph(fabric)
    jobs_on = defaultdict(set)
    for j, job in enumerate(mix.jobs):
        for t in job.terminals:
            jobs_on[int(t)].add(j)
    hosts = [t for t in range(fabric.terminals) if fabric.is_host_port[t]]

    def size(t: int) -> int:
        return max((len(mix.jobs[j].terminals) for j in jobs_on[t]), default=0)

    def stage(t: int) -> int:
        kind = fabric.terminal_kind[t]
        return 0 if kind == Kind.COMPUTE or jobs_on[t] else 1 if kind == Kind.STORAGE else 2

    def rank(t: int) -> tuple[int, int, int, int]:
        leaf = int(fabric.switch_guid[fabric.terminal_switch[t]])
        return stage(t), -size(t), leaf, int(fabric.terminal_guid[t])

    weight = np.zeros(fabric.channels, np.int64)
    trees: dict[int, dict[int, int]] = {}
    for t in sorted(hosts, key=rank):
        root = int(fabric.terminal_switch[t])
        hops = nx.single_source_shortest_path_length(graph, root)
        cost, via = {root: 0}, {}
        for v in sorted((v for v in hops if v != root), key=lambda v: hops[v]):
            options = [
                (cost[w] + int(weight[c]), int(fabric.channel_port[c]), c)
                for _, w, c in graph.out_edges(v, keys=True)
                if hops[w] == hops[v] - 1
            ]
            cost[v], _, via[v] = min(options)
        crossed: dict[int, int] = {}
        for source in hosts:
            shares = stage(t) > 0 or bool(jobs_on[source] & jobs_on[t])
            v = int(fabric.terminal_switch[source])
            while v != root:
                crossed[v] = via[v]
                weight[via[v]] += shares
                v = int(fabric.channel_target[via[v]])
        trees[t] = crossed
    return trees
