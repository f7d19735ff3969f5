"""Generated Dragonflies and tori: counts, degrees, diameters, and specs that are none."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from tests.worlds.oracles import live_graph


def degrees(fabric: Fabric) -> Counter[int]:
    return Counter(np.diff(fabric.channel_offset).tolist())


def diameter(fabric: Fabric) -> int:
    return int(nx.diameter(nx.Graph(live_graph(fabric))))


@pytest.mark.parametrize(
    ("spec", "switches", "hosts", "degree", "longest"),
    [
        ("torus:8x8x8,hosts=4", 512, 2048, 6, 12), ("torus:5", 5, 5, 2, 2),
        ("torus:3x4,hosts=2", 12, 24, 4, 3), ("torus:2x2x2", 8, 8, 3, 3),
        ("torus:2x5", 10, 10, 3, 3), ("torus:1x4x1", 4, 4, 2, 2), ("torus:1", 1, 1, 0, 0),
        ("hyperx:12x8,hosts=7", 96, 672, 18, 2), ("hyperx:5", 5, 5, 4, 1),
        ("hyperx:3x4x2,hosts=2", 24, 48, 6, 3), ("hyperx:3x3,cables=2", 9, 9, 8, 2),
        ("hyperx:1x4", 4, 4, 3, 1), ("hyperx:1", 1, 1, 0, 0),
        # The paper's degrees: (3 q - 1) / 2 for q = 1 mod 4, (3 q + 1) / 2 for 3.
        ("slimfly:3", 18, 54, 5, 2), ("slimfly:5,hosts=4", 50, 200, 7, 2),
        ("slimfly:5", 50, 200, 7, 2), ("slimfly:7,hosts=1", 98, 98, 11, 2),
        ("slimfly:11,hosts=1", 242, 242, 17, 2), ("slimfly:13,hosts=1", 338, 338, 19, 2),
    ],
)  # fmt: skip
def test_counts_degrees_and_diameters(
    spec: str, switches: int, hosts: int, degree: int, longest: int
) -> None:
    fabric = load_fabric(spec)
    assert (fabric.switches, fabric.terminals) == (switches, hosts)
    assert set(np.diff(fabric.channel_offset).tolist()) == {degree}
    assert nx.diameter(nx.Graph(live_graph(fabric))) == longest
    assert fabric.terminals_at.tolist() == [hosts // switches] * switches


def test_a_cable_of_a_hyperx_changes_one_coordinate() -> None:
    fabric = load_fabric("hyperx:3x4x2,hosts=2")
    for c in range(fabric.channels):
        ends = (fabric.channel_source[c], fabric.channel_target[c])
        places = [fabric.switch_name[int(end)][1:].split("-") for end in ends]
        assert sum(a != b for a, b in zip(*places, strict=True)) == 1


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("dragonfly:a=4", "is not a Dragonfly; write dragonfly:a=SWITCHES"),
        ("dragonfly:a=4,p=2,h=2,a=4", "is not a Dragonfly"),
        ("dragonfly:a=4,p=2,h=-2", "is not a Dragonfly"),
        ("dragonfly:a=4,p=0,h=2", "has a count of 0; 1 is the least"),
        ("dragonfly:a=4,p=2,h=2,g=10", "too few to reach 9 others; give at most g=9"),
        ("dragonfly:a=200,p=50,h=9", "needs switches of 258 ports; 254 is the most"),
        ("dragonfly:a=64,p=32,h=32", "more nodes than any InfiniBand subnet; shrink it"),
        ("hyperx:", "is not a HyperX; write hyperx:8x12,hosts=7"),
        ("hyperx:4x4,hosts=1,hosts=2", "is not a HyperX"),
        ("hyperx:4x4,ports=1", "is not a HyperX"),
        ("hyperx:4x0", "has a count of 0"),
        ("hyperx:4,cables=0", "has a count of 0"),
        ("hyperx:99x99,cables=2", "needs switches of 393 ports"),
        ("hyperx:64x64,hosts=64", "more nodes than any"),
        ("slimfly:", "is not a Slim Fly; write slimfly:5 or slimfly:5,hosts=4"),
        ("slimfly:5,cables=2", "is not a Slim Fly"),
        ("slimfly:9", "needs an odd prime, not 9; take 5, 7, 11"),
        ("slimfly:2", "needs an odd prime, not 2"),
        ("slimfly:5,hosts=0", "has a count of 0"),
        ("slimfly:179", "needs switches of"),
        ("slimfly:61,hosts=100", "more nodes than any"),
        ("torus:", "is not a torus; write torus:8x8x8"),
        ("torus:8x", "is not a torus"),
        ("torus:8x8,4", "is not a torus"),
        ("torus:8x0", "has a count of 0"),
        ("torus:8,hosts=0", "has a count of 0"),
        ("torus:8,hosts=253", "needs switches of 255 ports"),
        ("torus:999x999", "more nodes than any"),
    ],
)
def test_bad_specs(spec: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_fabric(spec)
    assert str(caught.value).startswith(f"{spec!r} ") and message in str(caught.value)
    assert "\n" not in str(caught.value)
