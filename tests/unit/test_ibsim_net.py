"""ibsim's `.net`: reading hand-written files, and what the writer does with odd fabrics. OpenSM's
`subnet.lst`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.ibsim_net import read_ibsim_net, write_ibsim_net
from sar_agent.fabric.lids import assign_lids
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.rates import parse_rate
from sar_agent.fabric.subnet_lst import read_subnet_lst, write_subnet_lst
from sar_agent.fabric.xgft import xgft_fabric
from tests.worlds.fabric_texts import HAND_WRITTEN, SMALL, differences

EDR = parse_rate("4xEDR") or 0.0


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
    builder.add_terminal(99, 'n\u00e9 "x"\n' * 60, "h" * 300, switch, 1, rate=EDR)
    fabric = builder.build()
    assert differences(round_trip(fabric, tmp_path / "net"), fabric) == []
    assert max(map(len, (tmp_path / "net").read_bytes().split(b"\n"))) < 255


def test_guid_of_another_node(tmp_path: Path) -> None:
    """`caguid` would be the switch's GUID: another port number gets the port's GUID right."""
    builder = FabricBuilder("clash")
    builder.add_terminal(0x5001, "n1", "n1", builder.add_switch(0x5000, "s", 4), 1, rate=EDR)
    fabric = builder.build()
    assert differences(round_trip(fabric, tmp_path / "net"), fabric) == []
    assert 'caguid=0x4fff\nCa 2 "n1" # "n1"\n[2](5001)' in (tmp_path / "net").read_text()


# As OpenSM 3.3.23 prints: the second half's ids are padded otherwise, the SM's port is CA-SM.
CA = (
    "{ CA-SM Ports:02 SystemGUID:0002c90300000100 NodeGUID:0002c90300000100 "
    "PortGUID:0002c90300000102 VenID:000000 DevID:D2F2 Rev:000000A1 {n001 HCA-1} LID:000B PN:02 }"
)
SW = (
    "{ SW Ports:24 SystemGUID:0008f10400000001 NodeGUID:0008f10400000001 "
    "PortGUID:0008f10400000001 VenID:000002C9 DevID:D2F20000 Rev:000000A1 "
    "{MF0;a {x}:B/U1} LID:0007 PN:1F }"
)
LINK = f"{CA} {SW} PHY=4x LOG=ACT SPD=25\n{SW} {CA} PHY=4x LOG=ACT SPD=25\n"


def test_opensms_lines() -> None:
    fabric = read_subnet_lst(LINK)
    assert fabric.switch_name == ("MF0;a {x}:B/U1",)
    assert (fabric.switch_lid[0], fabric.switch_ports[0]) == (7, 0x24)
    assert (fabric.terminal_lid[0], fabric.terminal_host[0]) == (11, "n001")
    assert (fabric.terminal_guid[0], fabric.terminal_port_number[0]) == (0x2C90300000102, 2)
    assert (fabric.terminal_switch_port[0], fabric.terminal_rate[0]) == (31, 100.0)
    assert fabric.terminal_up[0]
    assert fabric.notes == ()


def test_link_down_and_slow() -> None:
    fabric = read_subnet_lst(LINK.replace("ACT SPD=25", "DWN SPD=2.5").replace("4x", "1x"))
    assert not fabric.terminal_up[0]
    assert fabric.terminal_rate[0] == 2.0


def test_cut_short(tmp_path: Path) -> None:
    fabric = xgft_fabric("xgft:2;2,2;1,2")
    write_subnet_lst(fabric, assign_lids(fabric), tmp_path / "subnet.lst")
    text = (tmp_path / "subnet.lst").read_text()
    lines = text.splitlines(keepends=True)
    with pytest.raises(InputError, match=f"l:{len(lines)}: this line is cut short"):
        read_subnet_lst(text[:-30], name="l")
    with pytest.raises(InputError, match="in one direction only: the file is cut short"):
        read_subnet_lst("".join(lines[:-1]), name="l")


def test_a_bad_line_is_passed_over(tmp_path: Path) -> None:
    fabric = xgft_fabric("xgft:2;2,2;1,2")
    write_subnet_lst(fabric, assign_lids(fabric), tmp_path / "subnet.lst")
    text = (tmp_path / "subnet.lst").read_text()
    whole = read_subnet_lst(text)
    for at in (1, 5):
        lines = text.splitlines(keepends=True)
        lines[at] = lines[at].replace("LOG=", "LO")
        found = read_subnet_lst("".join(lines), name="l")
        assert found.digest == whole.digest
        assert found.notes[0].startswith(f"1 line was passed over, the first is line {at + 1} (")
    with pytest.raises(InputError, match="l:1: this line is cut short or of another format"):
        read_subnet_lst(text.replace("LOG=", "LO", 2) + text[:0], name="l")


def test_port_beyond_the_last() -> None:
    with pytest.raises(InputError, match='l:1: "S-0008f10400000001" has no port 37'):
        read_subnet_lst(LINK.replace("PN:1F", "PN:25"), name="l")


def test_later_fields_behind_the_speed() -> None:
    more = LINK.replace("SPD=25", "SPD=25 FEC=RS LEN=")
    assert read_subnet_lst(more).digest == read_subnet_lst(LINK).digest
    assert read_subnet_lst(more).terminal_rate[0] == 100.0
