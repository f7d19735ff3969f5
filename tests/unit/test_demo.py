"""The demo: its page says what was measured, and says so when that is nothing to boast of."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_lab.demo import engine_results as compare_module
from sar_lab.demo import run_demo
from sar_lab.demo.change_text import change
from sar_lab.demo.demo_folder import write_demo
from sar_lab.demo.demo_page import render_page
from tests.worlds.command_line import said
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


def test_routes_that_fail_the_check_are_shown_as_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = load_fabric("torus:5,hosts=1")
    fabric = replace(ring, switch_name=tuple(f"ring <{s}>" for s in range(5)))
    mix = JobMix.of([make_job("1", range(5))])
    monkeypatch.setattr(compare_module, "routed", lambda engine, *given: engine.route(*given))
    demo = run_demo(fabric, mix, fabric_spec="ring.net", jobs_spec="a & b", seeds=range(1))
    assert not any(result.verdict.passed for result in demo.main.results)
    page = Strict(render_page(demo))
    assert page.text.count("failed") == 4
    assert "sar: credit loop in virtual lane 0." in page.text
    assert "The fabric and the jobs are synthetic" not in page.text
    assert write_demo(demo, tmp_path) == tmp_path / "index.html"
