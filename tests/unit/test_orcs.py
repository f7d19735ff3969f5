"""ORCS's graph, read as ORCS reads it, leads every packet where our tables do."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.export import export_routes
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from tests.data import data_path
from tests.worlds.oracles import path

NODE = re.compile(r'"([HS][0-9a-f]{16})";')
EDGE = re.compile(r'"(\w+)" -> "(\w+)" \[comment="([^"]*)"\];')


def read(text: str) -> tuple[list[str], dict[str, list[tuple[str, str]]]]:
    """(nodes in order, from each the edges in order: end and comment)."""
    lines = text.splitlines()
    assert lines[0] == "digraph network {" and lines[-1] == "}"
    nodes, edges = list[str](), defaultdict[str, list[tuple[str, str]]](list)
    for line in lines[1:-1]:
        if node := NODE.fullmatch(line):
            nodes.append(node[1])
        else:
            edge = EDGE.fullmatch(line)
            assert edge, line
            assert {edge[1], edge[2]} <= set(nodes)
            edges[edge[1]].append((edge[2], edge[3]))
    return nodes, edges


def found_way(edges: dict[str, list[tuple[str, str]]], start: str, end: str) -> list[str]:
    """As ORCS's find_route: the first edge whose comment names the target, or is a star."""
    way = [start]
    while way[-1] != end:
        nexts = [to for to, hosts in edges[way[-1]] if hosts == "*" or end in hosts.split(",")]
        assert len(nexts) == 1 and len(way) < 20, (start, end, way)
        way += nexts
    return way


def follow_all(fabric: Fabric, folder: Path, some: int) -> None:
    routes = load_engine("dfsssp").route(fabric, JobMix.of([]), Options())
    export_routes(folder, fabric, routes, ["orcs"])
    nodes, edges = read((folder / "network.dot").read_text())
    live = np.flatnonzero(fabric.is_host_port)
    order = [int(line, 16) for line in (folder / "guids.txt").read_text().split()]
    assert order == fabric.terminal_guid[live].tolist()
    assert [node for node in nodes if node[0] == "H"] == [f"H{guid:016x}" for guid in order]
    count = sum(map(len, edges.values()))
    assert count == 2 * len(live) + np.count_nonzero(fabric.channel_up)
    for a in live[:some]:
        for b in live:
            if a == b:
                continue
            ends = f"H{fabric.terminal_guid[a]:016x}", f"H{fabric.terminal_guid[b]:016x}"
            channels = path(fabric, routes, int(fabric.terminal_switch[a]), int(b))
            assert channels is not None
            passed = [fabric.terminal_switch[a], *fabric.channel_target[channels]]
            names = [f"S{fabric.switch_guid[s]:016x}" for s in passed]
            assert found_way(edges, *ends) == [ends[0], *names, ends[1]]


def test_every_route_on_a_tree_with_dead_links(tmp_path: Path) -> None:
    tree = load_fabric("xgft:2;4,5;1,3")
    follow_all(tree.with_links_down([0, 7], [3]), tmp_path, tree.terminals)


@pytest.mark.data
def test_routes_of_a_real_fabric_with_units_and_several_rails(tmp_path: Path) -> None:
    follow_all(load_fabric(str(data_path("dgx-ndr.ibnetdiscover"))), tmp_path, 3)
