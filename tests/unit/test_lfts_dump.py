"""Forwarding tables as OpenSM and infiniband-diags print them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.export import export_routes
from sar_agent.formats.lfts_dump import read_lfts_dump
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    return load_fabric("xgft:2;3,3;1,2")


@pytest.fixture(scope="module")
def routes(fabric: Fabric) -> Routes:
    return load_engine("minhop").route(fabric, JobMix.of([]), Options())


@pytest.fixture
def dump(tmp_path: Path, fabric: Fabric, routes: Routes) -> Path:
    export_routes(tmp_path, fabric, routes, ["lfts"])
    return tmp_path / "lfts.dump"


def as_opensm(text: str) -> str:
    """opensm-lfts.dump, as 3.3.23 writes it."""
    text = text.replace(" : (", " # ").replace("')\n", "'\n").replace(" valid lids", " lids")
    return text.replace("(S", "('S").replace("):\n", "'):\n")


def as_dump_fts(text: str) -> str:
    """dump_fts of infiniband-diags 44."""
    head = "  Lid  Out   Destination\n       Port     Info \n"
    return text.replace("):\n", "):\n" + head).replace("lids dumped", "lids dumped ")


@pytest.mark.parametrize("form", [as_opensm, as_dump_fts])
def test_the_tools_own_forms(form, dump: Path, fabric: Fabric, routes: Routes) -> None:
    changed = form(dump.read_text())
    assert changed != dump.read_text()
    dump.write_text(changed)
    assert np.array_equal(read_lfts_dump(dump, fabric).egress, routes.egress)


def test_with_lmc_the_second_line_of_a_port_is_offset_1(
    dump: Path, fabric: Fabric, routes: Routes
) -> None:
    lines = []
    for line in dump.read_text().splitlines():
        lines.append(line)
        if "Channel Adapter" in line:
            guid = line.split("portguid ")[1].split(":")[0]
            lid = 0x4000 + int(line[:6], 16)
            lines.append(f"0x{lid:04x} 001 : (path #2 out of 2: portguid {guid})")
    dump.write_text("\n".join(lines).replace("valid lids", "lids") + "\n")
    egress = read_lfts_dump(dump, fabric).egress
    assert egress.shape[0] == 2
    assert np.array_equal(egress[0], routes.egress[0])
    assert (egress[1, : fabric.terminals] == 1).all()
    assert np.array_equal(egress[1, fabric.terminals :], routes.egress[0, fabric.terminals :])


def test_names_that_look_like_the_dumps_own_words(
    dump: Path, fabric: Fabric, routes: Routes
) -> None:
    text = dump.read_text().replace("HCA-1", "portguid 0x0000000000000001: 'z'")
    assert "guid 0x0000000000000001" in text
    text = text.replace(" (S1-0):", " (z guid 0x0000000000000002 (y):):")
    dump.write_text(text)
    assert np.array_equal(read_lfts_dump(dump, fabric).egress, routes.egress)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0x0002 ", "0x0002 999 ", ":3: port 999 of LID 2 is above 255"),
        (" portguid ", " port ", "no `portguid`"),
        ("Unicast lids", "Multicast mlids", "is not a line of an LFT dump"),
        ("14 valid", "15 valid", "15 LIDs announced, 14 read"),
        ("14 valid lids dumped\n", "", "cut short"),
    ],
)
def test_garbage_names_file_and_line(
    old: str, new: str, said: str, dump: Path, fabric: Fabric
) -> None:
    text = dump.read_text()
    assert old in text
    dump.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=said) as caught:
        read_lfts_dump(dump, fabric)
    assert caught.value.file == dump and caught.value.line


def test_another_fabrics_dump(dump: Path) -> None:
    other = load_fabric("xgft:2;3,3;1,2")
    object.__setattr__(other, "switch_guid", other.switch_guid + np.uint64(10**6))
    with pytest.raises(InputError, match="none of the switches"):
        read_lfts_dump(dump, other)
