"""ibsim's `.net`: reading hand-written files, and what the writer does with odd fabrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.ibsim_net import read_ibsim_net, write_ibsim_net
from sar_agent.fabric.model import Fabric
from tests.worlds.fabric_texts import HAND_WRITTEN, SMALL, differences


def round_trip(fabric: Fabric, path: Path) -> Fabric:
    write_ibsim_net(fabric, path)
    return read_ibsim_net(path.read_text())


def test_hand_written() -> None:
    """GUIDs are those ibsim itself gives: switches from 0x200000, HCAs from 0x100000."""
    fabric = read_ibsim_net(HAND_WRITTEN)
    assert fabric.switch_name == ("Switch1", "Switch2")
    assert fabric.switch_guid.tolist() == [0x200000, 0x200001]
    assert fabric.terminal_node_guid.tolist() == [0x100000, 0x100003]
    assert fabric.terminal_guid.tolist() == [0x100001, 0x100004]
    assert fabric.terminal_host == ("Hca1", "n002")
    assert fabric.channel_port.tolist() == [3, 5, 3, 5]
    assert fabric.channel_rate.tolist() == [96.0, 8.0, 96.0, 8.0]
    assert fabric.notes == ()


@pytest.mark.parametrize("line", ['include "other.net"', 'module="a"', '@[1] "alias"'])
def test_refused(line: str) -> None:
    with pytest.raises(InputError, match="net:1: aliases, include and module are not read here"):
        read_ibsim_net(f"{line}\n{HAND_WRITTEN}", name="net")


def test_damaged_comment(tmp_path: Path) -> None:
    write_ibsim_net(read_ibnetdiscover(SMALL), tmp_path / "net")
    text = (tmp_path / "net").read_text().replace("#sar {", "#sar [", 1)
    with pytest.raises(InputError, match="bad #sar comment"):
        read_ibsim_net(text)


def test_lines_fit_into_ibsims_buffer(tmp_path: Path) -> None:
    builder = FabricBuilder("long")
    switch = builder.add_switch(5, "s" * 300, 4)
    builder.add_terminal(99, 'n\u00e9 "x"\n' * 60, "h" * 300, switch, 1)
    fabric = builder.build()
    assert differences(round_trip(fabric, tmp_path / "net"), fabric) == []
    assert max(map(len, (tmp_path / "net").read_bytes().split(b"\n"))) < 255


def test_guid_of_another_node(tmp_path: Path) -> None:
    """`caguid` would be the switch's GUID: another port number gets the port's GUID right."""
    builder = FabricBuilder("clash")
    builder.add_terminal(0x5001, "n1", "n1", builder.add_switch(0x5000, "s", 4), 1)
    fabric = builder.build()
    assert differences(round_trip(fabric, tmp_path / "net"), fabric) == []
    assert 'caguid=0x4fff\nCa 2 "n1" # "n1"\n[2](5001)' in (tmp_path / "net").read_text()
