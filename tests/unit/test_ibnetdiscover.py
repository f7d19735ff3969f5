"""`read_ibnetdiscover`: what it makes of whole, odd and broken files; dialects of fabric files that
other versions and programs write."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.components import connected_components, require_connected
from sar_agent.fabric.hostnames import Kind
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.lids import assign_lids
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.rates import rate_name
from sar_agent.fabric.spec import load_fabric, parse_fabric
from sar_agent.fabric.subnet_lst import write_subnet_lst
from tests.data import data_path
from tests.worlds.command_line import sar_agent
from tests.worlds.db_csv_text import db_csv_of
from tests.worlds.fabric_texts import SMALL, differences, ibnetdiscover_text, in_order_of_guids


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


COUNTS = {
    "psmn-x5": (11, 89, 89, 70, 89),
    "small-2014": (8, 144, 145, 47, 144),
    "selene-storage": (160, 1247, 1247, 2039, 629),
    "dgx-ndr": (40, 582, 582, 532, 234),
    "director-notabs": (400, 2328, 2328, 6395, 383),
}
"""From grep and awk on the files, not from our reader: switches `grep -c '^Switch'`, HCAs
`grep -c '^Ca'`, their ports `awk '/^Ca/{c=1} /^Switch/{c=0} /^\\[/{n+=c}'`, inter-switch cables
half of `grep -c '^\\[[0-9]*\\][^"(]*"S-'`, hosts the different first words of `Ca` descriptions
plus one for each description without a name."""


@pytest.mark.data
@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_real_fabrics(name: str) -> None:
    fabric = load_fabric(data_path(f"{name}.ibnetdiscover"))
    assert (
        fabric.switches,
        len(np.unique(fabric.terminal_node_guid)),
        fabric.terminals,
        fabric.channels // 2,
        len(fabric.hosts),
    ) == COUNTS[name]
    assert not connected_components(fabric).any()
    assert fabric.channel_up.all()
    assert fabric.terminal_up.all()


FABRIC = load_fabric("xgft:2;4,3;1,2")
TEXT = ibnetdiscover_text(parse_fabric(ibnetdiscover_text(FABRIC), "whole"))
WHOLE = parse_fabric(TEXT, "whole")


def test_labels_of_ports_as_ibdiagnet_prints_them() -> None:
    """At switches `[1](1/1/2)`, at hosts `[1](B1D0F0/0/0/1)(GUID)`, and at the far end, too."""
    ports = re.sub(r"(?m)^\[(\d+)\]\t", r"[\1](1/\1/2) ", TEXT)
    ports = re.sub(r"(?m)^\[(\d+)\]\((?=\w+\))", r"[\1](B1D0F0/0/0/\1)(", ports)
    ports = re.sub(r'("S-[0-9a-f]{16}"\[\d+\])', r"\1(1/9/1)", ports)
    assert ports.count("/") > 3 * FABRIC.terminals
    assert differences(parse_fabric(ports, "labels"), WHOLE) == []


def test_a_network_for_ibsim_with_port_guids() -> None:
    """A generator writes `switchguid=0x…(…)` as ibnetdiscover does, but no LID behind switches."""
    lines = [line for line in TEXT.splitlines() if not line.startswith("#")]
    net = re.sub(r" enhanced port 0 lid \d+ lmc 0", "", "\n".join(lines) + "\n")
    found = parse_fabric(net, "net")
    assert set(differences(found, WHOLE)) <= {"switch_lid"}


def port_list(fabric: Fabric) -> str:
    """What `ibnetdiscover -p` would print: the ports of switches, then those of hosts."""
    f, rows = fabric, []

    def side(kind: str, lid: int, port: int, guid: int) -> str:
        return f"{kind} {lid:5d} {port:2d} 0x{guid:016x}"

    def switch(s: int, port: int) -> str:
        return side("SW", int(f.switch_lid[s]), port, int(f.switch_guid[s]))

    def rate(value: float) -> str:
        return (rate_name(value) or "").replace("x", "x ")

    for c in range(f.channels):
        a, b, back = f.channel_source[c], f.channel_target[c], f.channel_reverse[c]
        near, far = switch(a, int(f.channel_port[c])), switch(b, int(f.channel_port[back]))
        names = f"( '{f.switch_name[a]}' - '{f.switch_name[b]}' )"
        rows.append(f"{near} {rate(float(f.channel_rate[c]))} - {far} {names}")
    for t in range(f.terminals):
        s, port = f.terminal_switch[t], int(f.terminal_switch_port[t])
        guid, number = int(f.terminal_guid[t]), int(f.terminal_port_number[t])
        host, near = side("CA", int(f.terminal_lid[t]), number, guid), switch(s, port)
        name, leaf, speed = f.terminal_description[t], f.switch_name[s], rate(f.terminal_rate[t])
        rows.append(f"{near} {speed} - {host} ( '{leaf}' - '{name}' )")
        rows.append(f"{host} {speed} - {near} ( '{name}' - '{leaf}' )")
    free = switch(0, 40)
    return "\n".join([*rows, f"{free} 4x SDR {'':32}'{f.switch_name[0]}'", "a stray line"]) + "\n"


def test_the_list_of_ports() -> None:
    found = parse_fabric(port_list(WHOLE), "ports")
    odd = {"switch_ports", "terminal_node_guid", "switch_position", "terminal_position"}
    assert set(differences(in_order_of_guids(found), in_order_of_guids(WHOLE))) <= odd
    assert found.digest == WHOLE.digest
    assert any("1 line was not understood" in note for note in found.notes)


def test_planes_that_meet_in_adapters_only_are_one_sentence() -> None:
    blocks = []
    for plane in range(4):
        leaf, hosts = 0x5000 + plane, range(3)
        blocks.append(f'switchguid=0x{leaf:x}\nSwitch 8 "leaf{plane}" # "leaf{plane}"')
        blocks[-1] += "".join(f'\n[{h + 1}] "n{h}"[{plane + 1}]' for h in hosts)
    for h in range(3):
        ports = "".join(f'\n[{plane + 1}] "leaf{plane}"[{h + 1}]' for plane in range(4))
        blocks.append(f'caguid=0x{0xA000 + 16 * h:x}\nCa 4 "n{h}" # "n{h} mlx5_0"{ports}')
    fabric = parse_fabric("\n\n".join(blocks) + "\n", "planes")
    with pytest.raises(InputError, match="4 planes that meet only in hosts' adapters"):
        require_connected(fabric)


def other_subnet(text: str) -> str:
    """The same fabric with other GUIDs and names, and the same LIDs, as a second rail has."""
    text = re.sub(r"(?<=[-(=x])0*(a00\d\d|500\d)\b", r"7\1", text)
    return text.replace("n001", "m001").replace("leaf", "other")


def test_two_dumps_in_one_file_are_said_to_be_two() -> None:
    for second in (SMALL, other_subnet(SMALL), "  " + SMALL.replace("\n", "\n  ")):
        with pytest.raises(InputError, match="holds 2 dumps of ibnetdiscover"):
            parse_fabric(SMALL + second, "both")
    csv = db_csv_of(SMALL)
    with pytest.raises(InputError, match="holds 2 dumps of ibdiagnet"):
        parse_fabric(csv + db_csv_of(other_subnet(SMALL)), "both")


def test_subnets_that_share_lids_are_not_sent_to_repair_cables(tmp_path: Path) -> None:
    """opensm-subnet.lst has no heading: two are known by LIDs, which a subnet gives out once."""
    both = ""
    for number, text in enumerate((SMALL, other_subnet(SMALL))):
        path = tmp_path / str(number)
        fabric = read_ibnetdiscover(text)
        write_subnet_lst(fabric, assign_lids(fabric), path)
        both += path.read_text()
    with pytest.raises(InputError, match="several subnets; give the dump of one") as caught:
        require_connected(parse_fabric(both, "both"))
    assert "repair" not in str(caught.value)


def test_later_and_rare_forms_of_lines() -> None:
    """More numbers behind the speed; a node of a type that ibnetdiscover does not list; no speed of
    any cable."""
    more = re.sub(r"(?m)( \d+x\w+)$", r"\1 s=4 w=2 v=4 e=8 f=0", TEXT)
    assert differences(parse_fabric(more, "more"), WHOLE) == []
    first = TEXT.index("[1]", TEXT.index("Switch\t"))
    odd = '[40]\t"?-00000000000000aa"[1](aa) \t\t# "odd" lid 9 4xSDR\n'
    large = re.sub(r"Switch\t\d+", "Switch\t40", TEXT[:first] + odd + TEXT[first:])
    found = parse_fabric(large, "odd")
    assert found.digest == WHOLE.digest
    assert any("is a node of an unknown type: left out" in note for note in found.notes)
    silent = parse_fabric(re.sub(r"(?m) \d+x\w+$", " ????" + "?", TEXT), "silent")
    assert len(set(silent.channel_rate.tolist())) == 1
    assert "are taken to be as fast as each other, 2 Gbit/s" in silent.notes[0]


def test_a_file_that_was_read_instead_is_said(tmp_path: Path) -> None:
    (tmp_path / "ibdiagnet2.ibnetdiscover").write_text(TEXT[: len(TEXT) // 2])
    (tmp_path / "opensm-subnet.lst").write_text("#\n")
    write_subnet_lst(WHOLE, assign_lids(WHOLE), tmp_path / "ibdiagnet2.lst")
    done = sar_agent("topology", "generate", "--fabric", tmp_path)
    assert done.returncode == 0
    assert "ibdiagnet2.lst was read instead of ibdiagnet2.ibnetdiscover" in done.stderr
