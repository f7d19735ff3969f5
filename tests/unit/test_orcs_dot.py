"""ORCS's dot, read: by hand, as our export writes it, and as ORCS reads what is odd in it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from sar_agent.errors import CheckFailed, InputError
from sar_agent.fabric import Fabric
from sar_agent.formats.export import export_routes
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_lab.research.orcs import METRICS, Network, network_of_routes, schedule_of, simulate
from sar_lab.research.orcs.dot import read_network, read_order

# Two switches with a cable, a host at each; written as nobody would, but DOT allows it.
ODD = """/* a
comment */ strict digraph "odd" {
graph [label="H1"]; node [shape=box]
edge [comment="*"]
rankdir = LR
H0x1 -> S1 [weight=2, color=red]   // a chain and a default
"H2"->S2;
edge [comment=""] ; Sx
S1 -> S2 [comment="H2,\tH9
H3"] S1 -> S2 [comment="H2"]
S1 -> H0x1 [comment=H0x1]
S2 -> "H2" [comment="H2"]; S2 -> S1 [comment="H0x1"]
}
"""


def network(tmp_path: Path, text: str) -> Network:
    path = tmp_path / "net.dot"
    path.write_text(text)
    return read_network(path)


def test_odd_but_right(tmp_path: Path) -> None:
    found = network(tmp_path, ODD)
    assert (found.guid.tolist(), found.name) == ([1, 2], ("H0x1", "H2"))
    # Edges in the order of the file: 0 H1-S1, 1 H2-S2, 2 and 3 S1-S2, 4 S1-H1, 5 S2-H2, 6 S2-S1.
    # Nodes with tables: S1, S2, Sx. The first edge that names a host counts: 2, not 3.
    none = 0xFFFFFFFF
    assert found.hop.tolist() == [[4, 2], [6, 5], [none, none]]
    assert found.enter.tolist() == [0, 1]
    assert found.head.tolist() == [0, 1, 1, 1, 3, 4, 0]


def same(fabric: Fabric, folder: Path, ranks: int, runs: int) -> None:
    routes = load_engine("dfsssp").route(fabric, JobMix.of([]), Options())
    export_routes(folder, fabric, routes, ["orcs"])
    read, ours = read_network(folder / "network.dot"), network_of_routes(fabric, routes)
    assert read.guid.tolist() == ours.guid.tolist()
    order, unknown = read_order(folder / "guids.txt", read)
    assert (order.tolist(), unknown) == (list(range(len(read.guid))), 0)
    for pattern in ("rand::bruck", "alltoall::tree"):
        schedule = schedule_of(pattern, ranks, ranks // 3)
        for metric in METRICS:
            both = [simulate(each, schedule, metric, runs=runs, seed=4) for each in (read, ours)]
            assert both[0].json() == both[1].json()


GOOD = 'H1 -> S1 [comment="*"]\nH2 -> S1 [comment="*"]\n'


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("graph g {\n}", 1, "digraph"),
        ("digraph g {\nH1 -> S1 [comment", 2, "ends too early"),
        ("digraph g {\n" + GOOD, 4, "ends too early"),
        ("digraph g {\nH1 -- S1\n}", 2, "name was expected"),
        ("digraph g {\n\nH1 -> ;\n}", 3, "name was expected"),
        ("digraph g {\nsubgraph x { H1 }\n}", 2, "subgraphs"),
        ("digraph g {\nS1:3 -> S2\n}", 2, "ports"),
        ('digraph g {\n"H1 -> S1\n}', 2, "cannot read"),
        ("digraph g {\n" + GOOD + "Host1\n}", 4, "'Host1' has no GUID"),
        ("digraph g {\n" + GOOD + "H01\n}", 4, "have the same GUID"),
        ("digraph g {\nS1 -> S2\nH1\n}", None, "fewer than two hosts"),
        ("", None, "is empty"),
    ],
)
def test_bad_graphs_are_named_with_their_line(
    tmp_path: Path, text: str, line: int | None, word: str
) -> None:
    with pytest.raises(InputError, match=re.escape(word)) as caught:
        network(tmp_path, text)
    assert (caught.value.file, caught.value.line) == (tmp_path / "net.dot", line)


@pytest.mark.parametrize(
    ("nets", "word"),
    [
        ("", "from H1 to H2"),
        ('S1 -> S2 [comment="*"] S2 -> S1 [comment="*"]', "from H1 to H2"),  # a loop
        ('S1 -> H2 [comment="*"]', "from H2 to H1"),  # arrives where it does not belong
    ],
)
def test_routes_that_do_not_arrive(tmp_path: Path, nets: str, word: str) -> None:
    found = network(tmp_path, f"digraph g {{ {GOOD} {nets} }}")
    for metric in METRICS:
        with pytest.raises(CheckFailed, match=word):
            simulate(found, schedule_of("alltoall", 2), metric, order=np.array([0, 1], np.int32))


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("1\nx\n", 2, "not a GUID"),
        ("1 2\n", 1, "not a GUID"),
        ("0x1\n# a\n1\n", 3, "also in line 1"),
    ],
)
def test_bad_orders(tmp_path: Path, text: str, line: int, word: str) -> None:
    path = tmp_path / "order"
    path.write_text(text)
    with pytest.raises(InputError, match=word) as caught:
        read_order(path, network(tmp_path, ODD))
    assert caught.value.line == line
