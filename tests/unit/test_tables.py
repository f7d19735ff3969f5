"""Tables of ours and of others, as `--routes` takes them, and as OpenSM and infiniband-diags print
them."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.check import check_routes
from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.ibsim_net import read_ibsim_net, write_ibsim_net
from sar_agent.fabric.spec import load_fabric
from sar_agent.fabric.subnet_lst import read_subnet_lst
from sar_agent.formats.export import export_routes
from sar_agent.formats.lfts_dump import read_lfts_dump
from sar_agent.formats.read_tables import read_tables
from sar_agent.formats.routes_folder import write_routes_folder
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lanes.hop import hop_lanes
from tests.worlds.grids import by_dimension, routes_by, torus
from tests.worlds.table_texts import as_far, as_ibdiagnet

TREE = load_fabric("xgft:2;3,3;1,2")
RING = torus((5,), hosts=2)
ONE = routes_by(RING, by_dimension((5,)))


def routed(fabric: Fabric) -> Routes:
    return load_engine("minhop").route(fabric, JobMix.of([]), Options())


def by_path() -> Routes:
    """Two lanes by service level, for the ring: level 1 where a path passes from s4 to s0."""
    level = np.zeros_like(ONE.egress)
    channels = ONE.next_channel(RING)
    for d, s in np.ndindex(level.shape[1:]):
        v = s
        while v != RING.destination_switch[d]:
            w = int(RING.channel_target[channels[d, v]])
            level[0, d, s] |= {v, w} == {0, 4}
            v = w
    return replace(ONE, service_level=level, virtual_lanes=2)


def same(one: Routes, other: Routes) -> bool:
    return one.digest == other.digest and one.virtual_lanes == other.virtual_lanes


@pytest.mark.parametrize("lanes", ["one", "by path", "hop by hop"])
@pytest.mark.parametrize("form", ["fdbs", "lfts.dump"])
def test_exported_tables_are_read_back(lanes: str, form: str, tmp_path: Path) -> None:
    routes = ONE if lanes == "one" else by_path() if lanes == "by path" else hop_lanes(RING, ONE)
    assert routes is not None
    export_routes(tmp_path, RING, routes, ["ibdm", "lfts"])
    found = read_tables(tmp_path / form, RING)
    assert same(found, routes) and check_routes(RING, found).passed == (lanes != "one")
    if form == "fdbs":  # OpenSM's own file of the nodes holds the LIDs, too
        again = read_subnet_lst((tmp_path / "subnet.lst").read_text())
        assert read_tables(tmp_path / form, again).engine == "opensm"


def test_a_folder_is_searched_and_ours_goes_first(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no routes\.sar and no dump"):
        read_tables(tmp_path, RING)
    export_routes(tmp_path, RING, ONE, ["ibdm"])
    (tmp_path / "fdbs").rename(tmp_path / "opensm.fdbs")
    assert read_tables(tmp_path, RING).engine == "opensm"
    hops = hop_lanes(RING, ONE)
    assert hops is not None
    write_routes_folder(tmp_path, RING, hops)
    assert same(read_tables(tmp_path, RING), hops)
    assert same(read_tables(tmp_path / "routes.sar", RING), hops)


def as_opensm(text: str) -> str:
    """What 3.3.23 writes: other first words, LIDs of nobody, no paths."""
    text = text.replace("osm_ucast_mgr_dump_ucast_routes", "dump_ucast_routes")
    return text.replace("\n\n", "\n0x0100 : UNREACHABLE\n\n").replace("00   : yes", "HOPS UNKNOWN")


def test_opensms_own_words(tmp_path: Path) -> None:
    routes = routed(TREE)
    export_routes(tmp_path, TREE, routes, ["ibdm"])
    path = tmp_path / "fdbs"
    changed = as_opensm(path.read_text())
    assert changed != path.read_text()
    path.write_text(changed)
    assert same(read_tables(path, TREE), routes)


def test_with_lmc_a_port_has_several_lids(tmp_path: Path) -> None:
    builder = FabricBuilder("lmc")
    for s in range(2):
        builder.add_switch(1 + s, f"s{s}", 4, lid=1 + s)
        builder.add_terminal(16 + s, f"n{s} HCA-1", f"n{s}", s, 1, lid=10 + 2 * s)
    builder.add_link(0, 2, 1, 2)
    builder.add_link(0, 3, 1, 3)
    fabric = replace(builder.build(), lmc=1)
    path = tmp_path / "opensm.fdbs"
    path.write_text(
        "dump_ucast_routes: Switch 0x0000000000000001\nLID    : Port : Hops : Optimal\n"
        "0x0001 : 000  : 00   : yes\n0x0002 : 002  : 01   : yes\n"
        "0x000A : 001  : 00   : yes\n0x000B : 001  : 00   : yes\n"
        "0x000C : 002  : 01   : yes\n0x000D : 003  : 01   : yes\n"
        "dump_ucast_routes: Switch 0x0000000000000002\nLID    : Port : Hops : Optimal\n"
        "0x0001 : 003  : 01   : yes\n0x0002 : 000  : 00   : yes\n"
        "0x000A : 002  : 01   : yes\n0x000B : 003  : 01   : yes\n"
        "0x000C : 001  : 00   : yes\n0x000D : 001  : 00   : yes\n"
    )
    found = read_tables(path, fabric).egress
    assert found.shape == (2, 4, 2)
    assert found[:, 1, 0].tolist() == [2, 3] and found[:, 0, 1].tolist() == [2, 3]
    assert found[1, 2:].tolist() == found[0, 2:].tolist(), "switches repeat offset 0"


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("fdbs", "0x0002 : ", "0x0002 : 9", r"fdbs:4: port 9\d\d\d? of|is not a line"),
        ("fdbs", "\n0x000", "\n0x050", r"fdbs:3: LID 1281 belongs to no port of grid; take"),
        ("fdbs", "0x0002 : ", "0x0002 - ", r"fdbs:4: '0x0002 .* is not a line of an fdbs file"),
        ("fdbs", "0x0000000000000002", "0x0000000000000bad", r"fdbs:\d+: switch 0x0+bad is not in"),
        ("fdbs", "0x0000000000000002", "0x0000000000000001", "switch 0x0+1 occurs twice"),
        (
            "fdbs",
            "osm_ucast_mgr_dump_ucast_routes: Switch",
            "Table of",
            "is not the beginning of forwarding tables; give a",
        ),
        ("psl", "0x0000000000010001 3", "0x0000000000010001 999", r"psl:\d+: GUID .* LID 999 or"),
        (
            "psl",
            "0x0000000000010001 3 0",
            "0x0000000000010001 3 1",
            r"one switch use levels [01] and",
        ),
        ("psl", " 3 0\n", " 3\n", r"psl:\d+: .* is not `guid lid level`; give psl"),
        (
            "slvl",
            "0x0000000000000001 0 1",
            "0x0000000000000001 0 99",
            r"slvl:1: switch .* 99 is not",
        ),
        ("slvl", " 0x01 ", " 0x1 1 ", r"slvl:1: .* is not `guid in out` and eight bytes"),
        ("slvl", "0x01", "0x10", "both the service level and the port; only"),
        ("slvl", "0x01", "0xff", "lane 15, which carries no data"),
    ],
)
def test_errors_name_file_and_line(
    file: str, old: str, new: str, said: str, tmp_path: Path
) -> None:
    export_routes(tmp_path, RING, by_path(), ["ibdm"])
    text = (tmp_path / file).read_text()
    assert old in text
    count = -1 if (old, new) in (("0x01", "0xff"), ("\n0x000", "\n0x050")) else 1
    if (old, new) == ("0x01", "0x10"):  # at one port only, and one that packets pass
        old, new = "0x0000000000000001 1 3 0x01", "0x0000000000000001 1 3 0x10"
        assert old in text
    (tmp_path / file).write_text(text.replace(old, new, count))
    with pytest.raises(InputError, match=said):
        read_tables(tmp_path / "fdbs", RING)


def test_lanes_that_are_not_told(tmp_path: Path) -> None:
    export_routes(tmp_path, RING, by_path(), ["ibdm"])
    lines = (tmp_path / "slvl").read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith("0x0000000000000001 1 3 ")]
    assert len(kept) == len(lines) - 1
    (tmp_path / "slvl").write_text("".join(kept))
    with pytest.raises(InputError, match='no lanes of switch "s0" from port 1 to port 3'):
        read_tables(tmp_path / "fdbs", RING)
    (tmp_path / "slvl").unlink()  # then level i is lane i
    assert same(read_tables(tmp_path / "fdbs", RING), by_path())
    (tmp_path / "psl").unlink()  # and without levels all is in one lane
    assert same(read_tables(tmp_path / "fdbs", RING), ONE)


def test_tables_cut_short_or_of_another_fabric(tmp_path: Path) -> None:
    export_routes(tmp_path, TREE, routed(TREE), ["ibdm", "lfts"])
    lines = (tmp_path / "fdbs").read_text().splitlines(keepends=True)
    first = lines.index("\n")
    for count in (1, 2, first + 2):
        (tmp_path / "fdbs").write_text("".join(lines[:count]))
        with pytest.raises(InputError, match=r"in the middle of a switch|no table of switch"):
            read_tables(tmp_path / "fdbs", TREE)
    (tmp_path / "fdbs").write_text("".join(lines[: first + 1]))
    with pytest.raises(InputError, match=r'no table of switch "S1-1" .* at the same time'):
        read_tables(tmp_path / "fdbs", TREE)
    (tmp_path / "fdbs").write_text("".join(lines))
    for file in ("fdbs", "lfts.dump"):
        with pytest.raises(InputError, match="none of the switches"):
            read_tables(tmp_path / file, torus((7,)))
    dump = (tmp_path / "lfts.dump").read_text()
    guid = f"portguid 0x{TREE.terminal_guid[2]:016x}"
    dump = dump.replace(guid, "portguid 0xabc")
    guid = f"portguid 0x{TREE.terminal_guid[3]:016x}"
    (tmp_path / "lfts.dump").write_text(dump.replace(guid, "portguid 0xabd"))
    with pytest.raises(InputError, match=r"lfts\.dump:\d+: port 0x0+abc is not in"):
        read_tables(tmp_path / "lfts.dump", TREE)


def told(path: Path, fabric: Fabric) -> tuple[Routes, list[str]]:
    notes = list[str]()
    return read_tables(path, fabric, notes.append), notes


def test_one_destination_that_the_fabric_does_not_have(tmp_path: Path) -> None:
    routes = routed(TREE)
    export_routes(tmp_path, TREE, routes, ["ibdm", "lfts"])
    dump = (tmp_path / "lfts.dump").read_text()
    guid = f"portguid 0x{TREE.terminal_guid[2]:016x}"
    (tmp_path / "lfts.dump").write_text(dump.replace(guid, "portguid 0xabc"))
    found, notes = told(tmp_path / "lfts.dump", TREE)
    assert (found.egress[0, 2] == 255).all()
    line = dump[: dump.index(guid)].count("\n") + 1
    said = f"port 0x0000000000000abc is not in {TREE.name}"
    start = f"{tmp_path / 'lfts.dump'}: 1 destination was left out, the first in line"
    assert notes == [f"{start} {line}: {said}"]
    text = (tmp_path / "fdbs").read_text()
    last = text.replace("\n\n", "\n0x0700 : 001  : 01   : yes\n\n")
    (tmp_path / "fdbs").write_text(last)
    found, notes = told(tmp_path / "fdbs", TREE)
    assert same(found, routes)
    assert len(notes) == 1
    assert notes[0].endswith(f": LID 1792 belongs to no port of {TREE.name}")


def test_ibdiagnets_fdbs_and_far(tmp_path: Path) -> None:
    routes = routed(TREE)
    export_routes(tmp_path, TREE, routes, ["ibdm"])
    text = (tmp_path / "fdbs").read_text()
    (tmp_path / "fdbs").unlink()
    (tmp_path / "ibdiagnet2.far").write_text(as_far(text))
    found, notes = told(tmp_path, TREE)
    assert same(found, routes)
    entries = text.count("\n0x")
    assert notes == [
        f"{tmp_path / 'ibdiagnet2.far'}: {entries // 2} entries are adaptive; these are the ports "
        "that they have without adaptive routing"
    ]
    (tmp_path / "ibdiagnet2.fdbs").write_text(as_ibdiagnet(text))
    found, notes = told(tmp_path, TREE)
    assert same(found, routes)
    assert notes == [
        f"{tmp_path / 'ibdiagnet2.fdbs'}: only the first forwarding table of each switch is read"
    ]


def test_a_dump_that_cannot_be_read_is_not_the_end_of_a_folder(tmp_path: Path) -> None:
    routes = routed(TREE)
    export_routes(tmp_path, TREE, routes, ["ibdm", "lfts"])
    text = (tmp_path / "lfts.dump").read_text()
    (tmp_path / "opensm-lfts.dump").write_text(text[: len(text) // 2])
    (tmp_path / "lfts.dump").unlink()
    (tmp_path / "opensm.fdbs.gz").write_bytes(gzip.compress((tmp_path / "fdbs").read_bytes()))
    (tmp_path / "fdbs").unlink()
    found, notes = told(tmp_path, TREE)
    assert same(found, routes)
    assert len(notes) == 1
    assert notes[0].startswith(
        f"{tmp_path}: opensm.fdbs.gz was read instead of opensm-lfts.dump, which cannot be: "
    )
    (tmp_path / "opensm.fdbs.gz").unlink()
    with pytest.raises(InputError, match=r"opensm-lfts\.dump:\d+: "):
        read_tables(tmp_path, TREE)


def test_lids_of_another_time_are_seen(tmp_path: Path) -> None:
    """The same fabric with the LIDs of its hosts moved on by one."""
    known = replace(
        TREE,
        switch_lid=np.arange(100, 100 + TREE.switches, dtype=np.int32),
        terminal_lid=np.arange(1, 1 + TREE.terminals, dtype=np.int32),
    )
    export_routes(tmp_path, known, routed(TREE), ["ibdm"])
    assert same(read_tables(tmp_path / "fdbs", known), routed(TREE))
    moved = replace(known, terminal_lid=np.roll(known.terminal_lid, 1))
    with pytest.raises(InputError, match=r"fdbs:\d+: LID 1 leaves .* not those of xgft"):
        read_tables(tmp_path / "fdbs", moved)


def test_a_net_file_with_lids_and_tables_that_fit(tmp_path: Path) -> None:
    write_ibsim_net(TREE, tmp_path / "fabric.net")
    fabric = read_ibsim_net((tmp_path / "fabric.net").read_text())
    export_routes(tmp_path, fabric, routed(fabric), ["lfts"])
    shutil.copy(tmp_path / "lfts.dump", tmp_path / "opensm-lfts.dump")
    assert same(read_tables(tmp_path, fabric), routed(fabric))


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    export_routes(tmp_path, TREE, routed(TREE), ["lfts"])
    return tmp_path / "lfts.dump"


def as_opensm_lfts(text: str) -> str:
    """opensm-lfts.dump, as 3.3.23 writes it."""
    text = text.replace(" : (", " # ").replace("')\n", "'\n").replace(" valid lids", " lids")
    return text.replace("(S", "('S").replace("):\n", "'):\n")


def as_dump_fts(text: str) -> str:
    """dump_fts of infiniband-diags 44."""
    head = "  Lid  Out   Destination\n       Port     Info \n"
    return text.replace("):\n", "):\n" + head).replace("lids dumped", "lids dumped ")


@pytest.mark.parametrize("form", [as_opensm_lfts, as_dump_fts])
def test_the_tools_own_forms(form, dump: Path) -> None:
    changed = form(dump.read_text())
    assert changed != dump.read_text()
    dump.write_text(changed)
    assert same(read_lfts_dump(dump, TREE), routed(TREE))


def test_with_lmc_the_second_line_of_a_port_is_offset_1(dump: Path) -> None:
    lines = []
    for line in dump.read_text().splitlines():
        lines.append(line)
        if "Channel Adapter" in line:
            guid = line.split("portguid ")[1].split(":")[0]
            lid = 0x4000 + int(line[:6], 16)
            lines.append(f"0x{lid:04x} 001 : (path #2 out of 2: portguid {guid})")
    dump.write_text("\n".join(lines).replace("valid lids", "lids") + "\n")
    egress, usual = read_lfts_dump(dump, TREE).egress, routed(TREE).egress[0]
    assert egress.shape[0] == 2
    assert np.array_equal(egress[0], usual)
    assert (egress[1, : TREE.terminals] == 1).all()
    assert np.array_equal(egress[1, TREE.terminals :], usual[TREE.terminals :])


def test_names_that_look_like_the_dumps_own_words(dump: Path) -> None:
    text = dump.read_text().replace("HCA-1", "portguid 0x0000000000000001: 'z'")
    assert "guid 0x0000000000000001" in text
    text = text.replace(" (S1-0):", " (z guid 0x0000000000000002 (y):):")
    dump.write_text(text)
    assert same(read_lfts_dump(dump, TREE), routed(TREE))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (" portguid ", " port ", "no `portguid`"),
        ("14 valid lids dumped\n", "", "cut short"),
    ],
)
def test_garbage_names_file_and_line(old: str, new: str, said: str, dump: Path) -> None:
    text = dump.read_text()
    assert old in text
    dump.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=said) as caught:
        read_lfts_dump(dump, TREE)
    assert caught.value.file == dump and caught.value.line
