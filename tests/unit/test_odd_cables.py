"""Different by design is not broken: what `cables` compares with what, and in which order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.odd_cables import odd_cables
from sar_agent.fabric.rates import lanes_of, parse_rate, rate_name, speed_words
from sar_agent.fabric.spec import load_fabric
from sar_agent.reports.cables import not_ignored
from sar_agent.reports.places import find_places
from tests.data import data_path
from tests.worlds.fabric_texts import ibnetdiscover_text

TREE = load_fabric("xgft:2;6,8;1,4")


def of_rates(fabric: Fabric, channels: dict[int, float], hosts: dict[int, float]) -> Fabric:
    """With these rates of cables: of both directions of a channel, and of terminals."""
    channel, terminal = fabric.channel_rate.copy(), fabric.terminal_rate.copy()
    for c, rate in channels.items():
        channel[[c, fabric.channel_reverse[c]]] = rate
    for t, rate in hosts.items():
        terminal[t] = rate
    return replace(fabric, channel_rate=channel, terminal_rate=terminal)


def at_leaf(fabric: Fabric, leaf: int) -> tuple[list[int], list[int]]:
    """The channels up and the terminals of a leaf switch."""
    s = int(fabric.leaves[leaf])
    return (
        np.flatnonzero(fabric.channel_source == s).tolist(),
        np.flatnonzero(fabric.terminal_switch == s).tolist(),
    )


def with_parallel_cables() -> Fabric:
    """Eight leaf switches with four hosts each and two cables to each of three spines."""
    builder = FabricBuilder("parallel")
    spines = [builder.add_switch(0x100 + i, f"spine{i}", 40) for i in range(3)]
    for leaf in range(8):
        s = builder.add_switch(0x200 + leaf, f"leaf{leaf}", 16)
        for host in range(4):
            guid = 0x1000 + leaf * 16 + host
            builder.add_terminal(guid, f"n{leaf}{host} mlx5_0", f"n{leaf}{host}", s, 1 + host)
        for spine in spines:
            for k in range(2):
                builder.add_link(s, 5 + 2 * spine + k, spine, 1 + 2 * leaf + k)
    return builder.build()


@pytest.mark.parametrize("speed", ["EDR", "HDR", "NDR", "QDR"])
@pytest.mark.parametrize("lanes", [1, 2, 4, 12])
def test_a_rate_keeps_its_width(speed: str, lanes: int) -> None:
    rate = parse_rate(f"{lanes}x{speed}")
    assert rate is not None and lanes_of(rate) == lanes
    assert speed_words(rate, lanes_of(rate)) == f"{lanes}x{speed}"
    assert lanes_of(float(rate)) == 0 and rate_name(rate, 5) == rate_name(rate)


def test_half_a_cable_is_named_by_its_width(tmp_path: Path) -> None:
    text = ibnetdiscover_text(TREE).replace("4xEDR", "4xNDR")
    port = f'"{TREE.terminal_description[3]}" lid {TREE.terminal_lid[3]} '
    (tmp_path / "f").write_text(text.replace(f"{port}4xNDR", f"{port}2xNDR"))
    [sentence] = odd_cables(load_fabric(str(tmp_path / "f"))).sentences
    assert sentence.endswith("is 2xNDR among 4xNDR")


def test_an_older_switch_is_no_fault_and_hides_none() -> None:
    ways, hosts = at_leaf(TREE, 2)
    old = of_rates(TREE, dict.fromkeys(ways, 50.0), dict.fromkeys(hosts, 50.0))
    assert odd_cables(old).odd == ()
    [odd] = odd_cables(of_rates(old, {ways[1]: 12.5}, {})).odd
    assert ways[1] in (odd.channels[0], TREE.channel_reverse[odd.channels[0]])
    [odd] = odd_cables(of_rates(old, {}, {hosts[3]: 12.5})).odd
    assert odd.terminals == (hosts[3],)


def test_hosts_of_an_older_kind_come_last_in_one_line() -> None:
    older = dict.fromkeys(range(1, 48, 6), 50.0)  # one at each leaf
    fabric = of_rates(TREE, {}, older | {2: 25.0})
    lanes = np.full(fabric.terminals, 4, np.uint8)
    lanes[2] = 1
    odd = odd_cables(replace(fabric, terminal_lanes=lanes)).odd
    assert [each.terminals for each in odd] == [(2,), tuple(older)]
    lanes[list(older)] = 2  # half of their lanes are dead
    assert len(odd_cables(replace(fabric, terminal_lanes=lanes)).odd) == 9


def test_the_worst_cable_comes_first_wherever_it_is() -> None:
    ways, hosts = at_leaf(TREE, 1)[0], at_leaf(TREE, 3)[1]
    found = odd_cables(of_rates(TREE, {ways[0]: 50.0}, {hosts[0]: 25.0}))
    assert [each.terminals for each in found.odd] == [(hosts[0],), ()] and found.slow == 1
    found = odd_cables(of_rates(TREE, {ways[0]: 25.0}, {hosts[0]: 50.0}))
    assert [each.terminals for each in found.odd] == [(), (hosts[0],)]


def test_management_nodes_with_one_port_are_a_kind_of_their_own() -> None:
    twin = load_fabric("xgft:2;4,12;1,4")
    host = [f"n{t // 2:03}" for t in range(48)]
    for t, name in zip(
        (0, 2, 4, 6, 8, 10), ("login1", "login2", "ufm", "slurm", "head", "nfs"), strict=True
    ):
        host[t] = host[t + 1] = name
    fabric = replace(twin, terminal_host=tuple(host))
    down = fabric.with_links_down(terminals=[1, 3, 5, 7, 9, 11])
    assert odd_cables(down).odd == ()
    [odd] = odd_cables(down.with_links_down(terminals=[21])).odd
    assert "n010 has 1 port in the fabric, most hosts have 2" in odd.sentence


def test_a_thin_switch_was_built_so_and_a_thin_pair_was_not() -> None:
    fabric = with_parallel_cables()
    ways, _ = at_leaf(fabric, 0)
    by_spine = {int(fabric.channel_target[c]): c for c in ways}
    assert odd_cables(fabric.with_links_down([*by_spine.values()])).odd == ()
    lost = next(iter(by_spine.values()))
    [odd] = odd_cables(fabric.with_links_down([lost])).odd
    leaf, spine = fabric.channel_source[lost], fabric.channel_target[lost]
    back = fabric.channel_port[fabric.channel_reverse[lost]]
    names = fabric.switch_name
    assert odd.sentence.endswith(
        f"(free: {names[leaf]}[{fabric.channel_port[lost]}], {names[spine]}[{back}])"
    )
    assert set(odd.switches) == {leaf, spine}


def test_what_is_ignored_is_left_out() -> None:
    ways, hosts = at_leaf(TREE, 1)
    fabric = of_rates(TREE, {ways[0]: 50.0}, {hosts[0]: 25.0}).with_links_down(
        [at_leaf(TREE, 4)[0][1]]
    )
    odd = odd_cables(fabric).odd
    leaf, far = fabric.switch_name[fabric.leaves[1]], fabric.switch_name[fabric.leaves[4]]
    port = f"{leaf}[{fabric.channel_port[ways[0]]}]"
    left = [
        len(not_ignored(fabric, odd, find_places(fabric, names)))
        for names in ([], [fabric.terminal_host[hosts[0]]], [port], [leaf], [far], [leaf, far])
    ]
    assert left == [3, 2, 2, 1, 2, 0]
    with pytest.raises(InputError, match="did you mean"):
        find_places(fabric, [leaf + "9"])


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "first", "lines"),
    [
        ("dgx-ndr", 'IBLEAF-01-08:MQM9701/U1" and "MF0;B10-P1-IBSPINE-06', 16),
        ("small-2014", "joined by 3 cables, most of their like by 4", 1),
        ("selene-storage", "14 cables up, most leaf switches have 16: none to", 6),
        ("director-notabs", "19 cables up, most leaf switches have 20: none to", 8),
        ("psmn-x5", "is 4xDDR among 4xQDR", 2),
    ],
)
def test_real_captures(name: str, first: str, lines: int) -> None:
    fabric = load_fabric(str(data_path(f"{name}.ibnetdiscover")))
    said = odd_cables(fabric).sentences
    assert first in said[0] and len(said) == lines
    half = int(np.flatnonzero(fabric.is_host_port)[40])
    broken = of_rates(fabric, {}, {half: float(fabric.terminal_rate[half]) / 4})
    assert odd_cables(broken).odd[0].terminals == (half,)
