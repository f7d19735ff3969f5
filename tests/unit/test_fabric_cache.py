"""A cache that can only save time: never another fabric, never an error."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.cache import cached_fabric
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from tests.worlds.fabric_texts import SMALL


class Parser:
    """Counts how often it had to parse."""

    def __init__(self, text: str = SMALL) -> None:
        self.text, self.times = text, 0

    def __call__(self) -> Fabric:
        self.times += 1
        return read_ibnetdiscover(self.text)


def same(a: Fabric, b: Fabric) -> bool:
    pairs = [(getattr(a, f.name), getattr(b, f.name)) for f in fields(Fabric)]
    return all(
        np.array_equal(x, y) and x.dtype == y.dtype if isinstance(x, np.ndarray) else x == y
        for x, y in pairs
    )


def test_the_second_time_nothing_is_parsed(tmp_path: Path) -> None:
    parse, path = Parser(), tmp_path / "new" / "fabric.npz"
    first = cached_fabric(path, SMALL, HostMapper(), parse)
    assert same(cached_fabric(path, SMALL, HostMapper(), parse), first)
    assert same(first, read_ibnetdiscover(SMALL))
    assert parse.times == 1
    assert [file.name for file in path.parent.iterdir()] == ["fabric.npz"]


def test_when_it_was_generated_does_not_matter_all_else_does(tmp_path: Path) -> None:
    parse, path = Parser(), tmp_path / "fabric.npz"
    stamped = "# Topology file: generated on Wed Aug  6 16:11:23 2025\n" + SMALL
    cached_fabric(path, stamped, HostMapper(), parse)
    cached_fabric(path, stamped.replace("Aug", "Sep"), HostMapper(), parse)
    assert parse.times == 1
    cached_fabric(path, stamped + "#\n", HostMapper(), parse)
    assert parse.times == 2
    cached_fabric(path, stamped + "#\n", HostMapper(short_names=False), parse)
    assert parse.times == 3


def test_a_damaged_or_impossible_cache_is_none(tmp_path: Path) -> None:
    parse, path = Parser(), tmp_path / "fabric.npz"
    cached_fabric(path, SMALL, HostMapper(), parse)
    whole = path.read_bytes()
    for damaged in (b"", whole[:100], whole[: len(whole) // 2], b"noise" * 100):
        path.write_bytes(damaged)
        assert same(cached_fabric(path, SMALL, HostMapper(), parse), read_ibnetdiscover(SMALL))
    assert parse.times == 5
    assert cached_fabric(Path("/dev/null/none"), SMALL, HostMapper(), parse).switches == 2
