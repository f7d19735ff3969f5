"""The page *Emulated* says what the recorded rows say, and the record what the models say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sar_lab.research import emulated_rows
from sar_lab.research.emulated_rows import Agreement, Scene, lines, recorded, rows

PAGE = Path(emulated_rows.__file__).parent / "pages" / "emulated.md"


def test_the_page_has_every_line_of_the_record() -> None:
    text = PAGE.read_text()
    for line in lines():
        assert line.strip() in text
    assert len(rows()) == 60


def test_a_quarter_of_the_processors_was_idle_in_every_row() -> None:
    assert min(min(row.idle) for row in rows()) >= 0.25


@pytest.mark.parametrize("pattern", ["ring", "at-once"])
def test_the_models_say_of_ftree_what_the_record_says(pattern: str) -> None:
    row = next(row for row in rows() if row.pattern == pattern and row.contention[0] > 1.2)
    scene = Scene(row.fabric, row.jobs)
    assert next(iter(scene.contention(pattern))) == pytest.approx(row.contention[0], abs=1e-4)
    assert next(scene.fluid(pattern)) == pytest.approx(row.fluid[0], abs=1e-4)


def test_a_prediction_without_error_has_slope_and_correlation_1() -> None:
    assert Agreement.of([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == pytest.approx((3, 1, 1, 3, 1))


def test_a_row_that_does_not_count_is_not_recorded(tmp_path: Path) -> None:
    row = {"run": "ring", "measured": False}
    found = {"fabric": "xgft:2;2,2;1,1", "mix": "blocks:4", "rows": [row, row]}
    output = tmp_path / "output.json"
    output.write_text(json.dumps(found))
    with pytest.raises(ValueError, match="ring was not measured"):
        recorded([output])
