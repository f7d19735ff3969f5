"""ORCS: its patterns written out, congestion worked out on paper, and its dot, read by hand, as our
export writes it, and as ORCS reads what is odd in it."""

from __future__ import annotations

import re
from itertools import pairwise
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
from tests.worlds.command_line import lab_said, sar_lab


def levels(pattern: str, ranks: int, first: int | None = None) -> list[str]:
    """Each level as `from>to` words."""
    s = schedule_of(pattern, ranks, first)
    words = [f"{a}>{b}" for a, b in zip(s.source, s.destination, strict=True)]
    return [" ".join(words[a:b]) for a, b in pairwise(s.level)]


@pytest.mark.parametrize(
    ("pattern", "ranks", "expected"),
    [
        ("bisect", 5, ["1>0 3>2"]),
        ("bisect_fb_sym", 5, ["0>1 1>0 2>3 3>2"]),
        ("gather", 4, ["1>0 2>0 3>0"]),
        ("scatter", 4, ["0>1 0>2 0>3"]),
        ("tree", 6, ["0>1", "0>2 1>3", "0>4 1>5"]),
        ("bruck", 3, ["0>1 1>2 2>0", "0>2 1>0 2>1"]),
        ("recdbl", 4, ["0>1 1>0 2>3 3>2", "0>2 2>0 1>3 3>1"]),
        ("recdbl", 6, ["0>1 1>0 2>3 3>2", "0>2 2>0 1>3 3>1", "0>4 1>5"]),
        ("ring", 3, ["0>1", "1>2", "2>0"]),
        ("alltoall", 3, ["0>1 0>2 1>0 1>2 2>0 2>1"]),
        ("null", 3, []),
        ("neighbor:1", 4, ["0>1 1>0 2>3 3>2"]),
        # 0 takes 1 and 2; 1 is full with 0 and 2; 3 finds nobody with a place free.
        ("neighbor:2", 4, ["0>1 0>2 1>0 1>2 2>0 2>1"]),
        ("neighbor:9", 3, ["0>1 0>2 1>0 1>2 2>0 2>1"]),
        ("tree", 1, []),
    ],
)
def test_levels(pattern: str, ranks: int, expected: list[str]) -> None:
    assert levels(pattern, ranks) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        # b begins again with each level of a
        ("ring::gather", ["0>1 4>3", "1>2 4>3", "2>0 4>3"]),
        # what is left of b runs alone
        ("gather::ring", ["1>0 2>0 3>4", "4>3"]),
        # b is through after 2 levels, a has 3
        ("ring::ring", ["0>1 3>4", "1>2 4>3", "2>0 3>4", "4>3"]),
        ("null::ring", ["3>4", "4>3"]),
        ("ring::null", ["0>1", "1>2", "2>0"]),
        ("null::null", []),
    ],
)
def test_two_patterns_side_by_side(pattern: str, expected: list[str]) -> None:
    assert levels(pattern, 5, 3) == expected


@pytest.mark.parametrize(
    ("pattern", "first", "word"),
    [
        ("storm", None, "bisect_fb_sym"),
        ("gather::storm", 3, "storm"),
        ("gather::gather", None, "add -z K"),
        ("gather::gather", 5, "-z goes from 2 to 4"),
        ("gather", 1, "-z goes from 2 to 4"),
        ("neighbor", None, "neighbor:5"),
        ("neighbor:0", None, "neighbor:5"),
        ("neighbor:x", None, "neighbor:5"),
        ("gather:5", None, "no number"),
    ],
)
def test_wrong_words(pattern: str, first: int | None, word: str) -> None:
    with pytest.raises(InputError, match=word):
        schedule_of(pattern, 5, first)


HOSTS = range(1, 9)
"""The network that is worked out on paper:

A   B   C   D   E   F   G   H        hosts 1 … 8, two at each leaf
 \\ /     \\ /     \\ /     \\ /
 L1      L2      L3      L4
  each leaf has one cable to spine S (odd receivers) and one to T (even receivers)
"""


def dot() -> str:
    lines = []
    for leaf in range(1, 5):
        own = 2 * leaf - 1, 2 * leaf
        lines += [f'H{h} -> S{leaf} [comment="*"]; S{leaf} -> H{h} [comment="H{h}"]' for h in own]
        for spine, odd in (("Sodd", 1), ("Seven", 0)):
            up = ",".join(f"H{h}" for h in HOSTS if h % 2 == odd and h not in own)
            down = ",".join(f"H{h}" for h in own)
            lines.append(f'S{leaf} -> {spine} [comment="{up}"]')
            lines.append(f'{spine} -> S{leaf} [comment="{down}"]')
    return "digraph hand {\n" + ";\n".join(lines) + "\n}\n"


def found(folder: Path, *arguments: str, order: str = "1 2 3 4 5 6 7 8") -> dict[str, object]:
    (folder / "net.dot").write_text(dot())
    (folder / "guids.txt").write_text(order.replace(" ", "\n") + "\n")
    return lab_said(
        "count-congestion", "--orcs-dot", folder / "net.dot", "--order", folder / "guids.txt",
        *arguments, "--json",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "order", "metric", "value"),
    [
        # 7 messages over the receiver's own link.
        ("gather", "1 2 3 4 5 6 7 8", "dep_max_delay", 7),
        ("gather", "1 2 3 4 5 6 7 8", "sum_max_cong", 7),
        # H1 sends to 7 over its own link.
        ("scatter", "1 2 3 4 5 6 7 8", "dep_max_delay", 7),
        # Neighbours at a leaf: nothing shared.
        ("bisect", "1 2 3 4 5 6 7 8", "dep_max_delay", 1),
        # Ranks 1>0, 3>2, 5>4, 7>6 are H3>H1, H4>H5, H8>H2, H7>H6. Up from L2: H3 to odd H1 and H4
        # to odd H5 share the cable to S: 2. Up from L4: H8 to H2 and H7 to H6 share that to T: 2.
        ("bisect", "1 3 5 4 2 8 6 7", "dep_max_delay", 2),
        # The same in all four directions: back, H1>H3 and H5>H4 come from L1 and L3; into L2 they
        # come from S and T. H2>H8 and H6>H7 likewise. So 2 stays the worst.
        ("bisect_fb_sym", "1 3 5 4 2 8 6 7", "dep_max_delay", 2),
        # Levels 0>1, then 0>2 1>3, then 0>4 1>5 2>6 3>7.
        # Level 0: H1>H2 at the leaf, 1.
        # Level 1: H1>H3 by S, H2>H4 by T: 1.
        # Level 2: H1>H5 S, H2>H6 T, H3>H7 S, H4>H8 T: 1. The chain 0>1>3>7 has three: 3.
        ("tree", "1 2 3 4 5 6 7 8", "dep_max_delay", 3),
        ("tree", "1 2 3 4 5 6 7 8", "sum_max_cong", 3),
        # The same with odd hosts as ranks 0 … 3, even ones as 4 … 7.
        # Level 0: H1>H3: 1. Level 1: H1>H5, H3>H7: 1. Level 2: H1>H2 and so on, at the leaves: 1.
        ("tree", "1 3 5 7 2 4 6 8", "dep_max_delay", 3),
        # Ranks at L1, L1, L2, L2 …, even hosts first at each leaf: level 1 is H2>H4 and H1>H3, but
        # level 2 H2>H6, H1>H5, H4>H8, H3>H7: all by different cables again: 3.
        ("tree", "2 1 4 3 6 5 8 7", "dep_max_delay", 3),
        # Level 0: H1>H3 S. Level 1: H1>H5 by S, H3>H2 by T: 1.
        # Level 2: H1>H7, H3>H4 at the leaf, H5>H6 at the leaf, H2>H8: H1 by S and H2 by T: 1.
        ("tree", "1 3 5 2 7 4 6 8", "dep_max_delay", 3),
        # One level, ranks i > i+1: H1>H3, H3>H5, H5>H7, H7>H2, H2>H4, H4>H6, H6>H8, H8>H1. Up from
        # L1: H1 to S, H2 to T. From L2: H3 S, H4 T. From L3: H5 S, H6 T. From L4: H7 T, H8 S. Down
        # into L1: H2 from T, H1 from S. All alone in level 0, as the two further levels:
        # i > i+2: H1>H5, H3>H7, H5>H2, H7>H4, H2>H6, H4>H8, H6>H1, H8>H3. Up L1: S, T. L2: S, T.
        # L3: H5 T, H6 S. L4: H7 T, H8 S. Down: each host its own cable. 1.
        # i > i+4: H1>H2 and so on, inside the leaves. 1. Everybody is reached in each level: 3.
        ("bruck", "1 3 5 7 2 4 6 8", "dep_max_delay", 3),
        # A ring of levels: each rank sends after it has received, 8 levels of 1: a chain of 8.
        ("ring", "1 2 3 4 5 6 7 8", "dep_max_delay", 8),
        # All pairs: each host's own link 7. Up from a leaf to S: 2 senders, 3 odd hosts elsewhere:
        # 6. So 7.
        ("alltoall", "1 2 3 4 5 6 7 8", "dep_max_delay", 7),
        ("null", "1 2 3 4 5 6 7 8", "dep_max_delay", 0),
    ],
)
def test_one_group(tmp_path: Path, pattern: str, order: str, metric: str, value: int) -> None:
    one = found(tmp_path, "--pattern", pattern, "--metric", metric, order=order)
    assert (one["min"], one["avg"], one["max"], one["runs"]) == (value, value, value, 1)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--pattern", "storm"], "bisect_fb_sym"),
        (["--metric", "speed"], "sum_max_cong"),
        (["--pattern", "gather::gather"], "add -z K"),
        (["--ranks", "9"], "from 2 to 8"),
        (["--fabric", "xgft:2;4,4;1,2"], "leave --fabric"),
        (["--engine", "sar"], "leave --fabric"),
        (["--order", "nowhere"], "nowhere"),
        (["--pattern", "gather::ring", "-z", "3", "--group", "GROUP"], "-z 2"),
        (["--pattern", "ring::ring", "-z", "2", "--group", "GROUP", "--order", "ALL"], "ordered"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path: Path, arguments: list[str], word: str) -> None:
    (tmp_path / "net.dot").write_text(dot())
    (tmp_path / "GROUP").write_text("1\n2\n")
    (tmp_path / "ALL").write_text("1\n3\n")
    files = [str(tmp_path / each) if each in ("GROUP", "ALL") else each for each in arguments]
    done = sar_lab("count-congestion", "--orcs-dot", tmp_path / "net.dot", *files)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert word in done.stderr


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
