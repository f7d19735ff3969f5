"""The demo: its page says what was measured, and says so when that is nothing to boast of."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.jobs.synthetic import synthetic_mix
from sar_lab.demo import engine_results as compare_module
from sar_lab.demo import run_demo
from sar_lab.demo.change_text import change, count_changes
from sar_lab.demo.charts import ticks
from sar_lab.demo.demo_folder import write_demo
from sar_lab.demo.demo_page import render_page
from sar_lab.demo.drawing import bin_names, bin_width, draw_network
from sar_lab.demo.engine_results import compare_engines
from tests.worlds.command_line import said, sar_agent
from tests.worlds.strict_html import Strict

SPEC = "xgft:2;6,6;1,4"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], Path]:
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    return said("demo", "--fabric", SPEC, "--jobs", "mix:3", "--out", out, "--json"), out


def test_the_page_holds_the_measured_numbers(demo: tuple[dict[str, object], Path]) -> None:
    found, out = demo
    page = Strict((out / "index.html").read_text())
    for engine in found["engines"]:  # type: ignore[attr-defined]
        for key in ("effective_efi_max", "lower_bound_efi_max"):
            assert str(engine[key]) in page.text
        for key in ("throughput_mean", "throughput_min"):
            assert f"{engine[key]:.2f}" in page.text
        assert f"{engine['dark_fiber_ratio']:.1%}" in page.text
        assert engine["check_passed"]
    small = {e["engine"]: e for e in found["three_jobs"]["engines"]}  # type: ignore[index]
    efi, dark = "effective_efi_max", "dark_fiber_ratio"
    assert change(small["dfsssp"][efi], small["sar-plus"][efi], "d") in page.text
    assert change(small["dfsssp"][dark], small["sar-plus"][dark], ".1%") in page.text
    assert str(found["command"]) in page.text
    assert json.loads((out / "numbers.json").read_text()).items() <= found.items()


def test_the_page_needs_nobody_else(demo: tuple[dict[str, object], Path]) -> None:
    page = (demo[1] / "index.html").read_text()
    assert "://" not in page
    assert "url(" not in page
    assert not any("src" in tag.split() for tag in page.split("<"))
    assert "prefers-color-scheme: dark" in page


def test_the_demo_measures_what_route_and_measure_do(
    demo: tuple[dict[str, object], Path], tmp_path: Path
) -> None:
    same = ("--fabric", SPEC, "--jobs", "mix:3")
    for engine in demo[0]["engines"]:  # type: ignore[attr-defined]
        said("route", *same, "--engine", engine["engine"], "--out", tmp_path, "--json")
        measured = said("measure", *same, "--routes", tmp_path, "--json")
        for bounds in measured["lower_bounds"].values():  # type: ignore[attr-defined]
            del bounds["price"], bounds["sum"]  # too slow for a demo; the cuts are as tight here
        assert {name: engine[name] for name in measured} == measured


def test_the_picture_stands_alone(demo: tuple[dict[str, object], Path]) -> None:
    root = ElementTree.parse(demo[1] / "before-after.svg").getroot()
    text = " ".join(root.itertext())
    for engine in demo[0]["engines"][1:]:  # type: ignore[index]
        assert f"hottest link {engine['effective_efi_max']} job routes" in text


def test_the_terminal_names_the_page(tmp_path: Path) -> None:
    done = sar_agent("demo", "--fabric", SPEC, "--out", tmp_path)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == f"Open {tmp_path / 'index.html'}"
    assert "synthetic" in done.stdout.splitlines()[0]


def test_nothing_to_compare(tmp_path: Path) -> None:
    done = sar_agent("demo", "--fabric", "xgft:1;6;1", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "no job of mix:1 spans two leaf switches" in done.stderr
    assert not (tmp_path / "out").exists()


def ring() -> tuple[Fabric, JobMix]:
    """Five switches in a ring, a host on each: shortest paths close a credit loop in one lane."""
    builder = FabricBuilder("ring")
    switches = [builder.add_switch(100 + s, f"ring <{s}>", 4) for s in range(5)]
    for s in switches:
        builder.add_terminal(200 + s, f"h{s} HCA-1", f"h{s}", s, 1)
    for s in switches:
        builder.add_link(s, 2, (s + 1) % 5, 3)
    fabric = builder.build()
    return fabric, JobMix.of([make_job("1", range(5))])


def test_routes_that_fail_the_check_are_shown_as_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fabric, mix = ring()
    monkeypatch.setattr(compare_module, "routed", lambda engine, *given: engine.route(*given))
    demo = run_demo(fabric, mix, fabric_spec="ring.net", jobs_spec="a & b", seeds=range(1))
    assert not any(result.verdict.passed for result in demo.main.results)
    page = Strict(render_page(demo))
    assert page.text.count("failed") == 4
    assert "sar: credit loop in virtual lane 0." in page.text
    assert "The fabric and the jobs are synthetic" not in page.text
    assert write_demo(demo, tmp_path) == tmp_path / "index.html"


def test_a_drawing_has_every_live_channel_once_and_the_dark_ones_dark() -> None:
    whole = xgft_fabric(SPEC)
    fabric = whole.with_links_down([0])
    measures = compare_engines(fabric, synthetic_mix(fabric, 3)).before
    width = bin_width(measures.channel_efi)
    paths = {
        line.split('"')[1]: line.count("M")
        for line in draw_network(fabric, measures.channel_efi, width).splitlines()
        if line.startswith("<path")
    }
    assert sum(paths.values()) == fabric.channels - 2
    efi = measures.channel_efi[fabric.channel_up]
    assert paths.get("link q0", 0) == (efi == 0).sum()
    assert {name.removeprefix("link ") for name in paths} <= {name for name, _ in bin_names(width)}
    assert paths["link q6"] == (efi > 5 * width).sum()


@pytest.mark.parametrize(
    ("before", "after", "form", "said"),
    [
        (96, 53, "d", "falls from 96 to 53 (−45%)"),
        (60, 73, "d", "rises from 60 to 73 (+22%)"),
        (34.16, 34.21, ".0f", "stays at 34"),
        (0.038, 0.0, ".1%", "falls from 3.8% to 0.0%"),
        (0.201, 0.001, ".1%", "falls from 20.1% to 0.1%"),
        (0.0, 0.5, ".1%", "rises from 0.0% to 50.0%"),
    ],
)
def test_sentences_follow_the_numbers(before: float, after: float, form: str, said: str) -> None:
    assert change(before, after, form) == said


def test_counts_of_jobs() -> None:
    pairs = [(2.0, 1.0), (1.0, 2.0), (3.0, 3.00001), (0.0, 0.0)]
    assert count_changes(pairs) == {"lower": 1, "same": 2, "higher": 1}


def test_ticks_and_colours() -> None:
    assert ticks(96) == [0, 50]
    assert ticks(1.0) == [0, 0.5, 1.0]
    assert ticks(0) == [0]
    assert bin_width(np.array([96]), np.array([3])) == 16
    assert bin_names(1)[:3] == [("q0", "0 (dark)"), ("q1", "1"), ("q2", "2")]
