"""`read_opensm_fabric`: what it makes of the plugin's files, whole, odd and broken."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest

from sar_agent.errors import InputError
from sar_agent.fabric import Kind
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.opensm_file import decode_opensm_fabric, read_opensm_fabric
from tests.worlds.fabric_texts import SMALL, differences, in_order_of_guids
from tests.worlds.live.built import built
from tests.worlds.opensm_files import HEADER, NodeRecord, image_of, image_of_text, sealed


def switch(guid: int, *ports: int, name: bytes = b"s") -> NodeRecord:
    ends = {port: [guid, 0, 0, 4, 4, 7] for port in ports}
    return NodeRecord(guid, "S", 36, name, {0: [guid, guid & 0xFF, 0, 4, 0, 0], **ends})


def host(guid: int, *ports: int, name: bytes = b"n001", letter: str = "H") -> NodeRecord:
    ends = {port: [guid + port, 100 + port, 1, 4, 4, 7] for port in ports}
    return NodeRecord(guid, letter, 2, name, ends)


@pytest.mark.parametrize("storage", [(), ("n0*",)])
def test_it_is_the_fabric_that_ibnetdiscover_gives(storage: tuple[str, ...]) -> None:
    mapper = HostMapper(storage_hosts=storage)
    ours = decode_opensm_fabric(image_of_text(SMALL), mapper).fabric
    theirs = read_ibnetdiscover(SMALL, mapper=mapper)
    assert ours.digest == theirs.digest
    assert differences(in_order_of_guids(ours), in_order_of_guids(theirs)) == []
    assert ours.notes == () and Kind.IN_SWITCH in ours.terminal_kind and ours.lmc == 1


def test_ports_that_opensm_calls_unhealthy_are_down() -> None:
    nodes = [switch(1, 1, 2, 3), switch(2, 2, 3), host(16, 1), host(32, 1, name=b"n2")]
    nodes[1].ends[3][3] |= 0x80
    nodes[0].ends[1][3] |= 0x80
    nodes[1].ends[4] = [2, 0, 0, 4, 4, 7]
    cables = [(0, 1, 2, 1), (0, 2, 1, 2), (0, 3, 1, 3), (1, 4, 3, 1)]
    fabric = decode_opensm_fabric(image_of(nodes, cables)).fabric
    assert fabric.channel_up.tolist() == [True, False, True, False]
    assert fabric.terminal_up.tolist() == [False, True]


def test_the_slower_side_counts_and_an_unknown_rate_is_noted() -> None:
    nodes = [switch(1, 1, 2, 3), host(16, 1, 2), host(32, 1, name=b"n2")]
    nodes[1].ends[1][5] = 6  # EDR at one side
    nodes[0].ends[2][4] = 0  # one side silent
    nodes[0].ends[3][5] = nodes[2].ends[1][5] = 0
    fabric = decode_opensm_fabric(
        image_of(nodes, [(0, 1, 1, 1), (0, 2, 1, 2), (0, 3, 2, 1)])
    ).fabric
    assert fabric.terminal_rate.tolist() == [100.0, 200.0, 200.0]
    assert fabric.notes == (
        "1 cable has no readable width and speed: taken to be as fast as the fastest",
    )
    assert fabric.terminal_rail.tolist() == [0, 1, 0]


def test_cables_that_lead_nowhere_are_left_out_and_noted() -> None:
    nodes = [switch(1, 1, 5, 6), host(16, 1, 2), host(32, 2, name=b"n2")]
    fabric = decode_opensm_fabric(
        image_of(nodes, [(0, 1, 1, 1), (0, 5, 0, 6), (1, 2, 2, 2)])
    ).fabric
    assert (fabric.terminals, fabric.channels) == (1, 0)
    assert fabric.notes == (
        "1 cable has both ends at one switch: left out",
        "1 cable has no switch at either end: left out",
    )


def broken(at: int, value: int) -> bytes:
    """A fabric of one switch and one host with one byte of its arrays changed, checksums right."""
    image = bytearray(image_of([switch(1, 1), host(16, 1)], [(0, 1, 1, 1)]))
    image[HEADER.size + at] = value
    return sealed(bytes(image[HEADER.size :]), HEADER.unpack(image[: HEADER.size])[4:8])


@pytest.mark.parametrize(
    ("at", "value", "said"),
    [
        (0, 17, "node GUIDs are not ascending"),
        (48, 2, "a port of no node"),
        (40, 1, "ports are not ascending"),
        (52, 3, "a link of no port"),
        (56, 1, "a link of no port"),
        (52, 0, "a link of a switch's own port"),
        (66, 0, "an unknown type of node"),
        (66, 4, "an unknown type of node"),
        (68, 0, "a port number that its node does not have"),
        (70, 9, "the names are not as long"),
        (74, 3, "a port number that its node does not have"),
        (75, 8, "an LMC above 7"),
        (78, 5, "an unknown port state"),
        (81, 3, "an unknown rate"),
        (84, 9, "an unknown rate"),
    ],
)
def test_each_rule_of_the_format(at: int, value: int, said: str) -> None:
    with pytest.raises(InputError, match=f"^f: damaged: {said}.*; ask the plugin again$"):
        decode_opensm_fabric(broken(at, value), name="f")


def test_a_file_that_is_not_there_or_of_another_release(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_opensm_fabric(tmp_path / "fabric.sar")
    with pytest.raises(InputError, match="Is a directory"):
        read_opensm_fabric(tmp_path)
    newer = struct.pack("<8sI", b"SARFABRI", 2) + image_of_text(SMALL)[12:60]
    (tmp_path / "fabric.sar").write_bytes(newer + struct.pack("<I", zlib.crc32(newer)))
    with pytest.raises(
        InputError, match="version 2, and this agent reads version 1; install plugin"
    ):
        read_opensm_fabric(tmp_path / "fabric.sar")


def test_the_plugin_s_writer_and_our_reader_agree(tmp_path: Path) -> None:
    """The C writer, with sanitizers: 64 hosts at 8 leaf switches, 8 spines."""
    if shutil.which("gcc") is None or shutil.which("make") is None:
        pytest.skip("no gcc or make to build the C writer with")
    path = tmp_path / "fabric.sar"
    subprocess.run([built("opensm_bridge", "test_fabric_file"), path, "8"], check=True)
    fabric, digest = read_opensm_fabric(path)
    assert (fabric.terminals, fabric.switches, fabric.channels) == (64, 16, 128)
    assert fabric.switch_name[:3] == ("s00064", "s00072", "s00073")
    assert fabric.terminal_host[:9:8] == ("n00000", "n00008")
    assert np.all(fabric.terminal_rate == 100) and np.all(fabric.channel_rate == 100)
    assert fabric.terminal_lid.tolist() == list(range(1, 65)) and len(digest) == 16
