"""The table of lanes on docs/lanes.md is what the engines need today."""

from __future__ import annotations

import pytest

from tests.bench.lanes_needed import ENGINES, REAL, fabrics, free_choice, lanes_of
from tests.data import data_path
from tests.unit.test_numbers import DOCS, tables

(ROWS,) = tables(DOCS / "lanes.md", "Lanes needed").values()
FABRICS = fabrics()


def test_all_fabrics_are_listed() -> None:
    assert [row["fabric"] for row in ROWS] == list(FABRICS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["fabric"])
def test_a_row_is_what_the_engines_need(row: dict[str, str]) -> None:
    name = row["fabric"]
    if name in REAL:
        data_path(f"{name}.ibnetdiscover")  # skips where the file is not here
    fabric = FABRICS[name]()
    for engine in ENGINES:
        with free_choice():
            before = lanes_of(fabric, engine)
        assert f"{before} → {lanes_of(fabric, engine)}" == row[engine], engine
