"""Dialects of fabric files that other versions and programs write: they say the same fabric."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.components import require_connected
from sar_agent.fabric.lids import assign_lids
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.rates import rate_name
from sar_agent.fabric.spec import load_fabric, parse_fabric
from sar_agent.fabric.subnet_lst import write_subnet_lst
from tests.worlds.command_line import sar_agent
from tests.worlds.fabric_texts import differences, ibnetdiscover_text, in_order_of_guids

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
