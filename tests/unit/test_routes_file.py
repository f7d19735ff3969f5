"""The routes file as Python writes and reads it."""

from __future__ import annotations

import dataclasses
import errno
import os
from pathlib import Path

import numpy as np
import pytest

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.routes_file import (
    NO_SWITCH,
    RoutesFile,
    decode,
    encode,
    read_routes_file,
    write_routes_file,
)
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from tests.worlds.grids import torus
from tests.worlds.routes_vectors import sealed, small_routes


def entry(routes: RoutesFile, switch: int, destination: int) -> int:
    """An egress port, looked up by GUIDs."""
    row = list(routes.switch_guids).index(switch)
    terminals = list(routes.terminal_guids)
    column = (
        terminals.index(destination)
        if destination in terminals
        else len(terminals) + list(routes.switch_guids).index(destination)
    )
    return int(routes.forwarding[0, row, column])


@pytest.mark.parametrize("lanes", [1, 3])
def test_a_written_file_is_read_with_ascending_guids(tmp_path: Path, lanes: int) -> None:
    given = small_routes(lanes=lanes, wide=253)
    write_routes_file(tmp_path / "routes.sar", given)
    got = read_routes_file(tmp_path / "routes.sar")
    assert (got.generation, got.engine, got.lanes) == (7, "sar-plus", lanes)
    assert (got.fabric_digest, got.made_at) == (given.fabric_digest, given.made_at)
    assert got.switch_guids.tolist() == [0x10, 0x30, 2**63 + 5]
    assert got.terminal_guids.tolist() == [7, 8, 9, 2**64 - 1]
    assert got.switch_ports.tolist() == [5, 4, 253]
    assert got.terminal_leaf.tolist() == [2, 1, 1, 0]
    for switch in given.switch_guids:
        for destination in [*given.terminal_guids, *given.switch_guids]:
            assert entry(given, switch, destination) == entry(got, switch, destination)


def test_service_levels_move_with_their_guids() -> None:
    given = small_routes(lanes=2)
    got = decode(encode(given))
    assert given.service_levels is not None and got.service_levels is not None
    # Switch 0x30 is row 0 given, row 1 in the file; terminal 9 is column 0 given, 2 in the file.
    assert got.service_levels[0, 1, 2] == given.service_levels[0, 0, 0]
    # And the own LID of switch 0x10: column 4 + 1 given, 4 + 0 in the file.
    assert got.service_levels[0, 1, 4] == given.service_levels[0, 0, 5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"generation": 0}, "generation 0"),
        ({"generation": 2**64}, "generation"),
        ({"engine": "x" * 32}, "engine name"),
        ({"engine": 'a"b'}, "engine name"),
        ({"fabric_digest": b""}, "digest"),
        ({"lanes": 16}, "lanes"),
        ({"lanes": 2}, "service_levels is missing"),
        ({"switch_ports": np.array([4, 5, 300])}, "switch_ports"),
        ({"switch_ports": np.array([4, 4, 254]), "far_ends": np.full((3, 255), -1)}, "far_ends"),
        (
            {"switch_ports": np.array([4, 4, 254]), "far_ends": np.full((3, 255), 2**32 - 1)},
            "port count",
        ),
        (
            {"switch_ports": np.array([1, 1, 1]), "far_ends": np.full((3, 2), 2**32 - 1)},
            "higher than",
        ),
        ({"switch_guids": np.array([1, 1, 2])}, "ascending"),
        ({"terminal_leaf": np.array([0, 0, 0, 3])}, "leaf switch"),
        ({"forwarding": np.zeros((1, 3, 7))}, "port 0"),
        ({"forwarding": np.ones((1, 3, 7))}, "port 0"),
        ({"forwarding": np.ones((1, 3, 6))}, "forwarding"),
        ({"far_ends": None}, "far_ends is missing"),
        ({"far_ends": np.full((3, 255), 2**32 - 1)}, "far_ends"),
        ({"far_ends": np.full((3, 6), 3 << 8)}, "not in the list"),
        ({"far_ends": np.full((3, 6), 2 << 8 | 6)}, "far end"),
        ({"hop_lanes": np.zeros((3, 9, 9))}, "hop_lanes"),
        ({"hop_lanes": np.zeros((3, 6, 6))}, "1 virtual lanes"),
        ({"senders": np.array([0, 1, 2])}, "senders"),
        ({"senders": np.array([0, 1])}, "senders"),
        ({"had": np.zeros((1, 3, 7))}, "may have instead"),
        ({"had": np.ones((1, 3, 7))}, "may have instead"),
        ({"numbers": np.ones((1, 3, 6))}, "loads is missing"),
        ({"loads": np.ones((3, 6))}, "loads without numbers"),
        ({"numbers": np.ones((2, 3, 6)), "loads": np.ones((3, 6))}, "numbers"),
        ({"numbers": np.ones((1, 3, 6)), "loads": np.ones((2, 6))}, "loads"),
        ({"numbers": np.ones((1, 3, 6)), "loads": np.full((3, 6), 65537)}, "load above 65536"),
    ],
)
def test_arrays_that_break_a_rule_are_not_written(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    path = tmp_path / "routes.sar"
    with pytest.raises(InputError, match=message):
        write_routes_file(path, dataclasses.replace(small_routes(), **change))  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_refusal_names_file_rule_and_remedy(tmp_path: Path) -> None:
    path = tmp_path / "routes.sar"
    path.write_bytes(b"NOTROUTE" + bytes(200))
    with pytest.raises(InputError, match=r"routes\.sar: not a routes file .*; write it again"):
        read_routes_file(path)


def test_full_disk_leaves_the_old_file_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "routes.sar"
    write_routes_file(path, small_routes())
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        write_routes_file(path, dataclasses.replace(small_routes(), generation=8))
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["routes.sar"]


def test_unknown_versions_and_sections_are_refused() -> None:
    image = bytearray(encode(small_routes()))
    for version in (1, 2, 3, 5):
        image[8] = version
        with pytest.raises(InputError, match=f"format version {version}, this program reads 4;"):
            decode(sealed(bytes(image)))
    image = bytearray(encode(small_routes()))
    image[128] = 9  # the id of the first section
    with pytest.raises(InputError, match="section 1 is missing"):
        decode(sealed(bytes(image)))


RING = torus((5,))


def routed(fabric: Fabric) -> Routes:
    return load_engine("dfsssp").route(fabric, JobMix.of([]), Options())


def test_every_file_says_where_cables_end_and_who_sends() -> None:
    file = decode(encode(routes_to_file(RING, routed(RING), 1)))
    ends = file.far_ends[file.far_ends != NO_SWITCH]
    assert len(ends) == 2 * RING.switches, "two ends a cable between switches, and a ring of them"
    for s, row in enumerate(file.far_ends):
        for port in np.flatnonzero(row != NO_SWITCH):
            far, far_port = int(row[port]) >> 8, int(row[port]) & 255
            assert file.far_ends[far, far_port] == s << 8 | port, "and back"
    assert file.senders.tolist() == [1] * RING.switches
    proved = np.arange(RING.switches) == 2
    assert routes_to_file(RING, routed(RING), 1, senders=proved).senders.tolist() == [0, 0, 1, 0, 0]
