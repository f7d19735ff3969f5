"""Readings of one fabric in other orders and with other names."""

from __future__ import annotations

import os
import random
import time
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from sar_agent.agent.outcome import Result
from sar_agent.fabric import Fabric
from sar_agent.fabric.ibsim_net import read_ibsim_net, write_ibsim_net
from sar_agent.fabric.spec import load_fabric
from sar_agent.fabric.stable_order import StableOrder
from tests.worlds.agent_world import JOBS, World


def shuffled(text: str, seed: int) -> str:
    """The nodes of the file in another order."""
    blocks = text.strip().split("\n\n")
    random.Random(seed).shuffle(blocks)
    return "\n\n".join(blocks) + "\n"


def written(world: World, text: str) -> None:
    """Long enough ago that nobody may be writing it still."""
    world.net.write_text(text)
    at = time.time() - random.Random(text).randint(60, 600)
    os.utime(world.net, (at, at))


def text_of(fabric: Fabric, folder: Path) -> str:
    write_ibsim_net(fabric, folder / "written.net")
    return (folder / "written.net").read_text()


def same(one: Fabric, other: Fabric) -> bool:
    """In all that does not say where a node was in its source."""
    names = {field.name for field in fields(Fabric)}
    names -= {"name", "notes", "switch_position", "terminal_position"}
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.mark.parametrize("spec", ["xgft:2;4,4;1,2", "torus:3x3,hosts=2"])
def test_a_fabric_has_the_same_indices_in_whatever_order_it_is_read(
    spec: str, tmp_path: Path
) -> None:
    text, order = text_of(load_fabric(spec), tmp_path), StableOrder()
    first = order.of(read_ibsim_net(text).with_switches_down([2]).with_links_down([1], [3]))
    for seed in range(5):
        whole = read_ibsim_net(shuffled(text, seed))
        s, c, t = (
            [list(now).index(one[i]) for i in at]
            for now, one, at in (
                (whole.switch_guid, first.switch_guid, [2]),
                (_ports(whole), _ports(first), [1]),
                (whole.terminal_guid, first.terminal_guid, [3]),
            )
        )
        other = whole.with_switches_down(s).with_links_down(c, t)
        assert other.digest == first.digest and not same(other, first)
        found = order.of(other)
        assert same(found, first) and order.of(other) is found


def _ports(fabric: Fabric) -> list[tuple[int, int]]:
    guids = fabric.switch_guid[fabric.channel_source]
    return list(zip(guids.tolist(), fabric.channel_port.tolist(), strict=True))


def test_what_was_away_has_its_indices_again(tmp_path: Path) -> None:
    """New nodes follow those that were there."""
    whole, order = load_fabric("xgft:2;4,4;1,2"), StableOrder()
    text = text_of(whole, tmp_path)
    blocks = text.strip().split("\n\n")
    rest = "\n\n".join(block for block in blocks if 'Ca 1 "n003"' not in block) + "\n"
    rest = "\n".join(line for line in rest.split("\n") if '] "n003"[' not in line)
    less = order.of(read_ibsim_net(rest))
    more = order.of(read_ibsim_net(text))
    assert more.terminals == less.terminals + 1
    assert more.terminal_guid[:-1].tolist() == less.terminal_guid.tolist()
    again = order.of(read_ibsim_net(shuffled(rest, 1)))
    assert again.digest == less.digest and same(again, less)
    assert same(order.of(read_ibsim_net(shuffled(text, 1))), more)


def test_another_order_changes_no_entry(tmp_path: Path) -> None:
    """Tables in force are not read again while OpenSM has sent none."""
    world = World(tmp_path)
    world.once()
    world.source.records = JOBS[:1]
    world.once()
    calm = world.bridge.tables
    written(world, shuffled(world.net.read_text(), 3))
    assert world.once().result is Result.NOTHING
    world.source.records = JOBS
    assert world.once().result is Result.INSTALLED
    world.source.records = JOBS[:1]
    assert world.once().result is Result.INSTALLED
    assert calm and world.bridge.tables
    assert np.array_equal(calm.forwarding, world.bridge.tables.forwarding)
    assert world.value("sar_agent_check_failures_total") == 0


def test_a_host_that_gets_its_name_later_is_known(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Until a host has booted, its HCA has the description of its vendor."""
    world = World(tmp_path)
    named = world.net.read_text()
    written(world, named.replace('"n005', '"MT4123-5'))
    report = world.once()
    assert "hosts of jobs that are not in the fabric or topology.conf: n005" in caplog.text
    written(world, named)
    report = world.once()
    assert report.result is Result.INSTALLED and "1 job" not in report.sentence
    assert world.agent.current.state
    assert {"n001", "n005", "n009"} in map(set, world.agent.current.state.jobs)


def test_a_fabric_without_hosts_is_no_reading(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    world.once()
    written(world, 'vendid=0x1\nSwitch 36 "S-1" # "x"\n')
    world.bridge.topology_changes += 1
    assert world.once().result is Result.NOTHING
    assert "fabric.net: the fabric has no hosts; going on with what was read" in caplog.text
    assert not world.value("sar_agent_unexpected_errors_total", where="pass")
