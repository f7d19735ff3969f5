"""Congestion worked out on paper, and the command that prints it.

A   B   C   D   E   F   G   H        hosts 1 … 8, two at each leaf
 \\ /     \\ /     \\ /     \\ /
 L1      L2      L3      L4
  each leaf has one cable to spine S (odd receivers) and one to T (even receivers)
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worlds.command_line import lab_said, sar_lab

HOSTS = range(1, 9)


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
