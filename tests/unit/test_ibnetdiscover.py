"""`read_ibnetdiscover`: what it makes of whole, odd and broken files."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.hostnames import Kind
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.spec import load_fabric, parse_fabric
from tests.worlds.fabric_texts import SMALL, differences


def test_small_fabric() -> None:
    fabric = read_ibnetdiscover(SMALL)
    assert fabric.switch_guid.tolist() == [0x5001, 0x5002]
    assert fabric.switch_name == ("MF0;leaf # 1:MQM8700/U1", "MF0;leaf2:MQM8700/U1")
    assert fabric.switch_lid.tolist() == [1, 2]
    assert fabric.channel_port.tolist() == [30, 31, 30, 31]
    assert fabric.channel_reverse.tolist() == [2, 3, 0, 1]
    assert fabric.channel_rate.tolist() == [200.0] * 4
    # Rails follow the HCAs' numbers: mlx5_2 comes before mlx5_10.
    assert [d.split()[-1] for d in fabric.terminal_description[:2]] == ["mlx5_2", "mlx5_10"]
    assert fabric.terminal_rail.tolist() == [0, 1, 0, 1, 0, 0]
    assert fabric.terminal_host == (
        "n001", "n001", "H-00000000000a0030", "H-00000000000a0030", "gateway",
        "H-0000000000005008",
    )  # fmt: skip
    assert fabric.terminal_guid.tolist() == [0xA0020, 0xA0010, 0xA0031, 0xA0032, 0xA0041, 0x5008]
    assert fabric.terminal_kind.tolist() == [0, 0, 0, 0, Kind.OTHER, Kind.IN_SWITCH]
    assert fabric.terminal_lid.tolist() == [12, 11, 13, 15, 16, 14]
    assert fabric.terminal_rate.tolist() == [200.0, 200.0, 32.0, 32.0, 40.0, 200.0]
    assert fabric.terminal_switch.tolist() == [0, 0, 0, 1, 1, 0]
    assert fabric.terminal_position.tolist() == [4, 3, 5, 5, 6, 7]
    assert fabric.lmc == 1
    assert fabric.notes == ()


def test_one_sided_cable_is_believed_and_noted() -> None:
    line = SMALL.split("\n")[12]
    assert line.startswith("[3]")
    whole = read_ibnetdiscover(SMALL)
    fabric = read_ibnetdiscover(SMALL.replace(line + "\n", ""))
    assert differences(fabric, whole) == []
    assert fabric.notes == ("1 cable is mentioned at one side only, the first at line 46",)


def test_contradicting_sides() -> None:
    with pytest.raises(
        InputError, match=r'f:14: port 30 .* leads to "S-.*5002"\[29\], but line 26'
    ):
        read_ibnetdiscover(SMALL.replace('5002"[30]', '5002"[29]').replace(
            '[31]\t"S-0000000000005001"[31]', '[29]\t"S-0000000000005001"[31]'
        ), name="f")  # fmt: skip


def test_odd_cabling_is_noted() -> None:
    loop = '[9]\t"S-0000000000005001"[9]\t\t# "x" lid 1 4xHDR\n[30]\t"S-0000000000005002"[30]'
    text = SMALL.replace('[30]\t"S-0000000000005002"[30]', loop, 1)
    text = text.replace(
        '[1](a0041) \t"S-0000000000005002"[2]',
        '[2](a0042) \t"H-00000000000a0010"[2] (a0011) \t\t# lid 0 lmc 0 "x" lid 0 4xHDR\n'
        '[1](a0041) \t"S-0000000000005002"[2]',
    ).replace('Ca\t1 "H-00000000000a0010"', 'Ca\t2 "H-00000000000a0010"')
    fabric = read_ibnetdiscover(text)
    assert differences(fabric, read_ibnetdiscover(SMALL)) == []
    assert fabric.notes == (
        "1 cable is mentioned at one side only, the first at line 56",
        '"S-0000000000005001" is cabled to itself at line 14: left out',
        '"R-00000000000a0040" and "H-00000000000a0010" are cabled to each other without a switch '
        "at line 56: left out",
    )


def test_node_given_twice() -> None:
    section = SMALL[SMALL.index("vendid=0x2c9\ndevid=0xcf09") :]
    with pytest.raises(InputError, match="occurs twice"):
        read_ibnetdiscover(SMALL + "\n" + section)


def test_port_beyond_the_last() -> None:
    with pytest.raises(InputError, match='f:16: "S-0000000000005001" has no port 37'):
        read_ibnetdiscover(SMALL.replace('[36]\t"H', '[37]\t"H'), name="f")


@pytest.mark.parametrize(
    "prompt",
    [
        "[root@mgmt01 ~]# ibnetdiscover",
        "admin@mgmt:~$ sudo ibnetdiscover | tee fabric.txt",
        "mgmt01 # ibnetdiscover",
        "Switch1 [standalone] > ibnetdiscover",
        "@mgmt> ibnetdiscover",
        "[1] 40312",
        "Caesar:~ # ibnetdiscover",
        "\x1b[01;32madmin@mgmt\x1b[00m:\x1b[01;34m~\x1b[00m$ ibnetdiscover",
        "\x1b]0;root@mgmt: ~\x07[root@mgmt ~]# ibnetdiscover",
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_capture_of_a_terminal_is_read(prompt: str, end: str, tmp_path: Path) -> None:
    """The command before the dump, and the next prompt behind it, with a byte-order mark."""
    path = tmp_path / "pasted"
    text = f"\ufeff{prompt}\n{SMALL}{prompt.split(' ibnet')[0]} "
    path.write_bytes(text.replace("\n", end).encode())
    fabric = load_fabric(path)
    assert differences(fabric, read_ibnetdiscover(SMALL)) == []
    assert fabric.notes[0].startswith("2 lines were not understood, the first is line 1")


def test_a_job_that_ends_between_the_lines_and_an_indented_page_are_read() -> None:
    whole = read_ibnetdiscover(SMALL)
    indented = "\n".join(f"    {line}" for line in SMALL.split("\n"))
    assert differences(parse_fabric(indented, "page"), whole) == []
    fabric = read_ibnetdiscover(SMALL.replace("\nvendid", "\n[1]+  Done    sleep 60\nvendid", 1))
    assert fabric.notes == ("1 line was not understood, the first is line 6",)


def test_a_broken_port_line_is_passed_over_for_that_of_the_far_end() -> None:
    broken = SMALL.replace('[30]\t"S-', "[30]\tS-", 1)
    fabric = read_ibnetdiscover(broken)
    assert differences(fabric, read_ibnetdiscover(SMALL)) == []
    line = broken[: broken.index("[30]\tS-")].count("\n") + 1
    assert fabric.notes[0].startswith(
        f"1 line was passed over, the first is line {line} (cannot read this port: '[30]"
    )
    assert fabric.notes[1].startswith("1 cable is mentioned at one side only")
    with pytest.raises(InputError, match=f"f:{line}: cannot read this port: "):
        read_ibnetdiscover(SMALL.replace('\t"S-', "\tS-"), name="f")  # more than one in twenty


def test_the_quoted_id_names_the_node(tmp_path: Path) -> None:
    """Chassis print one `switchguid=` for several switches; ids in quotes are unique."""
    whole = read_ibnetdiscover(SMALL)
    text = SMALL.replace("switchguid=0x5002(5002)", "switchguid=0x5001(5001)")
    assert text != SMALL
    fabric = read_ibnetdiscover(text)
    assert differences(fabric, whole) == []
    assert fabric.notes == (
        "1 node has another GUID in the line before than in quotes, the first at line "
        f"{text[: text.index('Switch', text.index('0x5001(5001)', 300))].count(chr(10)) + 1}; "
        "the quoted one is used",
    )


def test_slower_side_counts() -> None:
    fabric = read_ibnetdiscover(SMALL.replace("lid 2 4xHDR\n[31]", "lid 2 1xSDR\n[31]"))
    assert fabric.channel_rate.tolist() == [2.0, 200.0, 2.0, 200.0]
