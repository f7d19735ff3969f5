"""NVIDIA's `ibdiagnet2.db_csv` as a fabric."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.db_csv import read_db_csv
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.spec import load_fabric
from tests.worlds.db_csv_text import db_csv_of, tables_of, written
from tests.worlds.fabric_texts import SMALL, differences

TEXT = db_csv_of(SMALL)
LEAF = "0x0000000000005001"


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        read_db_csv(text, name="d")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_same_fabric_as_ibnetdiscovers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TEXT)
    fabric = load_fabric(tmp_path / "a.csv")
    assert differences(fabric, read_ibnetdiscover(SMALL)) == []
    assert fabric.notes == ()


@pytest.mark.parametrize("escape", [False, True])
@pytest.mark.parametrize(
    "name", ['a "b" c', "a, b", 'a "b", c', 'x", "y', '"', 'end "x"', "", 'a ""']
)
def test_descriptions_with_quotes_and_commas(name: str, escape: bool) -> None:
    tables = tables_of(SMALL)
    tables["NODES"][1][0][0] = f'"{name}"'
    fabric = read_db_csv(written(tables, escape=escape))
    wanted = name or "S-0000000000005001"
    assert fabric.switch_name[0] == (wanted if escape else wanted.replace('""', '"'))
    assert fabric.notes == ()


@pytest.mark.parametrize("value", ["N/A", "ERR", "-1", "", "0", str(1 << 25)])
def test_fields_without_a_value_are_unknown(value: str) -> None:
    tables = tables_of(SMALL)
    first = tables["PORTS"][1][1]
    assert first[:3:2] == [LEAF, 1]
    first[6:12] = [value] * 6
    fabric = read_db_csv(written(tables))
    assert fabric.notes[:1] == () or "passed over" in fabric.notes[0]
    assert differences(fabric, read_ibnetdiscover(SMALL)) == []  # the host's side says it


def test_sections_in_any_order_and_without_those_that_are_not_needed() -> None:
    tables = tables_of(SMALL)
    names = [name for name in tables if name not in ("SWITCHES", "RUN_INFO", "AR_INFO")]
    for seed in range(10):
        random.Random(seed).shuffle(names)
        fabric = read_db_csv(written({name: tables[name] for name in names}))
        assert differences(fabric, read_ibnetdiscover(SMALL)) == []


def test_without_ports() -> None:
    tables = tables_of(SMALL)
    del tables["PORTS"]
    fabric = read_db_csv(written(tables))
    assert fabric.digest == read_ibnetdiscover(SMALL).digest
    assert fabric.notes[0] == "it has no section PORTS: speeds and LIDs are not known"


@pytest.mark.parametrize(
    ("section", "row", "why"),
    [
        ("NODES", '"a",36,2', "NODES: 3 fields in a table of 13 columns"),
        ("NODES", '"a",36,7,1,1,0x1,0x1,0x1,1,1,1,1,0', "NODES: '7' is no number of 1 … 3"),
        ("NODES", '"a",36,2,1,1,0x1,ERR,0x1,1,1,1,1,0', "NODES: 'ERR' is no GUID"),
        (
            "NODES",
            f'"a",36,2,1,1,0x1,{LEAF},0x1,1,1,1,1,0',
            "NODES: node 0x0000000000005001 occurs twice",
        ),
        ("PORTS", "x", "PORTS: 1 fields in a table of 14 columns"),
        ("LINKS", f"{LEAF},30,0x9,1", "LINKS: port 30 of 0x0000000000005001 has two cables"),
        ("LINKS", f"{LEAF},9,0x9,1", "LINKS: node 0x0000000000000009 has no row in NODES"),
        ("LINKS", f"{LEAF},99,0x5002,7", "LINKS: node 0x0000000000005001 has no port 99"),
        ("LINKS", f"{LEAF},0,0x5002,7", "LINKS: '0' is no number of 1 … 255"),
    ],
)
def test_a_bad_row_is_passed_over(section: str, row: str, why: str) -> None:
    text = TEXT.replace(f"END_{section}\n", f"{row}\nEND_{section}\n")
    fabric = read_db_csv(text)
    line = text[: text.index(f"{row}\n")].count("\n") + 1
    assert differences(fabric, read_ibnetdiscover(SMALL)) == []
    assert fabric.notes == (f"1 line was passed over, the first is line {line} ({why})",)


def test_a_node_that_cannot_be_read_goes_with_its_cables() -> None:
    text = TEXT.replace('"n001 mlx5_10",1,1,', '"n001 mlx5_10",1,x,')
    fabric = read_db_csv(text)
    line = text[: text.index('"n001 mlx5_10"')].count("\n") + 1
    assert fabric.terminals == read_ibnetdiscover(SMALL).terminals - 1
    assert fabric.notes == (
        f"2 lines were passed over, the first is line {line} (NODES: 'x' is no number of 1 … 3)",
    )


def test_a_file_that_was_cut() -> None:
    for section in ("NODES", "PORTS", "LINKS"):
        cut = TEXT[: TEXT.index(f"END_{section}") - 5]
        assert refused(cut) == (
            f"d: the file ends inside section {section}: it is cut short; "
            "run ibdiagnet again and copy ibdiagnet2.db_csv when it is done"
        )
    assert refused(TEXT[: TEXT.index("END_SWITCHES")]).startswith(
        "d: no cable in it: the file ends inside section SWITCHES: it is cut short; run"
    )
    fabric = read_db_csv(TEXT[: TEXT.index("END_AR_INFO")])
    assert fabric.notes == ("the file ends inside section AR_INFO: it is cut short",)
    assert differences(fabric, read_ibnetdiscover(SMALL)) == []


def test_a_column_that_is_needed_is_missing() -> None:
    said = refused(TEXT.replace("NodeGuid1,PortNum1", "NodeGuid1,Port1"))
    assert said.startswith("d: no cable in it: ")
    assert "section LINKS has no column PORTNUM1" in said
    assert refused(TEXT.replace("END_NODES", "").replace("START_NODES", "#")).startswith("d: no n")
