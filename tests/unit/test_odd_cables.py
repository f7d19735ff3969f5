"""Cables and switches that are slower or fewer than most of their like."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from sar_agent.fabric.odd_cables import odd_cables
from sar_agent.fabric.spec import load_fabric
from tests.worlds.command_line import sar_agent
from tests.worlds.fabric_texts import ibnetdiscover_text

TREE = load_fabric("xgft:2;4,6;1,4")


def test_a_slow_cable_is_named_with_its_ports_and_speeds() -> None:
    rate = TREE.channel_rate.copy()
    c = int(np.flatnonzero(TREE.channel_source == TREE.leaves[1])[2])
    back = int(TREE.channel_reverse[c])
    rate[[c, back]] = 16.0
    odd = odd_cables(replace(TREE, channel_rate=rate))
    a, b = TREE.switch_name[TREE.channel_source[c]], TREE.switch_name[TREE.channel_target[c]]
    ends = [f'"{a}"[{TREE.channel_port[c]}]', f'"{b}"[{TREE.channel_port[back]}]']
    [sentence] = odd.sentences
    assert all(end in sentence for end in ends) and "is 4xDDR among 4xEDR" in sentence
    assert odd.slow == 1 and odd.repaired.channel_rate.tolist() == TREE.channel_rate.tolist()


def test_a_leaf_with_fewer_cables_up() -> None:
    c = int(np.flatnonzero(TREE.channel_source == TREE.leaves[1])[0])
    [sentence] = odd_cables(TREE.with_links_down([c])).sentences
    assert (
        sentence
        == f'"{TREE.switch_name[TREE.leaves[1]]}" has 3 cables up, most leaf switches have 4'
    )


def test_assess_names_them_before_any_gain(tmp_path: Path) -> None:
    text = ibnetdiscover_text(TREE)
    first = text.index(f'"S-{int(TREE.switch_guid[TREE.leaves[0]]):016x}"')
    line = text.rindex("4xEDR", 0, text.index("\n\n", first))
    (tmp_path / "fabric").write_text(text[:line] + "4xSDR" + text[line + 5 :])
    done = sar_agent(
        "assess", "--fabric", tmp_path / "fabric", "--jobs", "mix:1", "--no-simulate",
        "--engine", "minhop", "--engine", "sar-plus", "--out", tmp_path / "o",
    )  # fmt: skip
    said = done.stdout.splitlines()[0]
    assert said.startswith("Repair these first: ") and "4xSDR among 4xEDR" in said
    assert "With this cable as fast as its like, the fullest link would carry" in said
    assert "Repair these first" in (tmp_path / "o" / "index.html").read_text()
