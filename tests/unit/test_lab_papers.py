"""The papers' tables and figures: what is listed can be run, and says how it compares."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.errors import InputError
from sar_agent.lab.papers import routing_keys_fig4 as fig4
from sar_agent.lab.papers.registry import CLASSES, experiment, experiments
from tests.unit.test_cli import said, sar_agent


def test_each_says_what_it_is() -> None:
    found = experiments()
    assert "routing-keys-fig4" in found
    for name, one in found.items():
        assert name == one.NAME and one.CLASS in CLASSES and one.WHERE and one.PUBLISHED
        assert callable(one.run) and one.SEEDS >= 0
    with pytest.raises(InputError, match=r"no experiment is called 'magic'; there are .*fig4"):
        experiment("magic")


def test_they_are_listed() -> None:
    lines = [line.split(None, 2) for line in sar_agent("lab", "list").stdout.splitlines()]
    assert ["routing-keys-fig4", "S"] in [words[:2] for words in lines]
    rows = said("lab", "list", "--json")["experiments"]
    assert isinstance(rows, list) and len(rows) == len(experiments())
    assert sar_agent("lab", "run", "magic").returncode == 2


def test_one_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fig4, "SIDES", (4, 16))
    command = ("lab", "run", fig4.NAME, "--seeds", "2", "--out", str(tmp_path))
    [row] = said(*command, "--json")["rows"]  # type: ignore[misc, attr-defined]
    assert row["class"] == "S" and len(row["ours"]["claims"]) == 3
    assert (tmp_path / "images" / "reproduction" / f"{fig4.NAME}.png").exists()
    printed = sar_agent(*command).stdout
    assert "published: D-mod-k" in printed and "\nverdict: " in printed


def test_figure_2_is_as_printed(tmp_path: Path) -> None:
    result = experiment("routing-keys-fig2").run([0], tmp_path)
    assert result.verdict == "reproduced" and result.picture and result.picture.exists()


def test_nrk_keeps_what_dmodk_lets_grow() -> None:
    tree = fig4.clos(16)
    found = [fig4.largest(tree, 16, seed) for seed in range(3)]
    assert all(one["nrk"] <= 2 < one["dmodk"] for one in found)
