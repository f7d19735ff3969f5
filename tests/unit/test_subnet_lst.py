"""OpenSM's `subnet.lst`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.lids import assign_lids
from sar_agent.fabric.subnet_lst import read_subnet_lst, write_subnet_lst
from sar_agent.fabric.xgft import xgft_fabric

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
