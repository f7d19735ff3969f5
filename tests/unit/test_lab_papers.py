"""The papers' tables and figures: what is listed can be run, and says how it compares."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sar_agent.errors import InputError
from sar_agent.lab.papers import routing_keys_fig4 as fig4
from sar_agent.lab.papers.registry import CLASSES, experiment, experiments
from sar_agent.lab.papers.statistics import spread
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
    assert "routing-keys-fig4  S  Routing Keys 2017, Figure 4" in sar_agent("lab", "list").stdout
    rows = said("lab", "list", "--json")["experiments"]
    assert isinstance(rows, list) and len(rows) == len(experiments())
    assert sar_agent("lab", "run", "magic").returncode == 2


def test_one_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fig4, "SIDES", (4, 8))
    command = ("lab", "run", fig4.NAME, "--seeds", "2", "--out", str(tmp_path))
    found = said(*command, "--json")
    assert found["class"] == "S" and Path(str(found["picture"])).exists()
    ours = found["ours"]
    assert isinstance(ours, dict) and ours["seeds"] == 2
    assert len(ours["nrk"]["64"]["all"]) == 2 and "NRK" in str(found["verdict"])
    printed = sar_agent(*command).stdout
    assert "published: D-mod-k" in printed and "\nverdict: " in printed
    again = said(*command, "--json")
    assert json.dumps(again["ours"]) == json.dumps(ours)


def test_nrk_keeps_what_dmodk_lets_grow() -> None:
    tree = fig4._tree(16)
    found = [fig4.largest(tree, 16, seed) for seed in range(3)]
    assert all(one["nrk"] <= 2 < one["dmodk"] for one in found)


def test_a_spread_has_its_mean_inside() -> None:
    found = spread([1, 2, 4])
    assert found.median == 2 and found.low <= found.mean <= found.high
    assert spread([3]) == (3, 3, 3, 3)
