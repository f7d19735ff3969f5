"""The papers' tables and figures: what is listed can be run, and says how it compares."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sar_agent.errors import InputError
from sar_lab.cli import app
from sar_lab.research.papers import keys_runs
from sar_lab.research.papers import routing_keys_fig4 as fig4
from sar_lab.research.papers.claims import NEAR, Claim, value, verdict
from sar_lab.research.papers.draw_code import roots_of
from sar_lab.research.papers.measured import begin, measured
from sar_lab.research.papers.outcome import Outcome, ResultTable
from sar_lab.research.papers.registry import (
    CLASSES,
    Experiment,
    experiment,
    experiments,
    peer_studies,
)
from sar_lab.research.papers.reproduction_page import share_of, write_page
from sar_lab.research.papers.result_store import PAGES, run_row, stored_result
from tests.worlds.command_line import lab_said, sar_lab


def test_each_says_what_it_is() -> None:
    found = experiments()
    assert "routing-keys-fig4" in found
    for name, one in found.items():
        assert name == one.name and one.kind in CLASSES and one.where and one.published
        assert callable(one.run) and one.seeds >= 0
    with pytest.raises(InputError, match=r"no experiment is called 'magic'; use one of .*fig4"):
        experiment("magic")


def test_they_are_listed() -> None:
    listed = [line.split(maxsplit=2) for line in sar_lab("lab", "list").stdout.splitlines()]
    where = {words[0]: words[1:] for words in listed}
    assert where["routing-keys-fig4"][0] == "S"
    assert where["routing-keys-fig4"][1] == "routing-keys-2017, Fig. 4"
    assert max(map(len, sar_lab("lab", "list").stdout.splitlines())) <= 80
    names = [name for name in where if name.startswith("pftree-fig")]
    assert names == [f"pftree-fig{n}" for n in (1, 3, 4, 5, 7, 10, 11, 12, 13, 14, 15)]
    names = [name for name in where if name.startswith("routing-keys-fig")]
    assert names == [f"routing-keys-fig{n}" for n in (2, 4, 6, 7, 8, 9)]
    rows = lab_said("lab", "list", "--json")["experiments"]
    assert isinstance(rows, list) and len(rows) == len(experiments())
    assert all(row["published"] for row in rows)
    assert sar_lab("lab", "run", "magic").returncode == 2


def test_one_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fig4, "SIDES", (4, 16))
    command = ("lab", "run", "routing-keys-fig4", "--seeds", "2", "--out", str(tmp_path))
    [row] = lab_said(*command, "--json")["rows"]  # type: ignore[misc, attr-defined]
    assert row["class"] == "S" and row["seeds"] == [0, 1] and len(row["ours"]["claims"]) == 3
    assert (tmp_path / row["picture"]).stat().st_size > 1000
    printed = sar_lab(*command).stdout
    assert "published: “the maximal contention" in printed and "\nverdict: " in printed
    [again] = lab_said(*command, "--json")["rows"]  # type: ignore[misc, attr-defined]
    assert again["ours"] == row["ours"]
    page = (tmp_path / "reproduction.md").read_text()
    assert "--seeds 2" in page and "Not run: " in page and row["verdict"] in page


def test_all_goes_on_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row that is kept is not run again, unless asked for, or asked for by name."""
    ran: list[str] = []

    def row(name: str) -> Experiment:
        def run(seeds: Sequence[int]) -> Outcome:
            ran.append(name)
            if name == "b" and len(ran) == 2:
                raise RuntimeError("killed")
            return Outcome([], how=f"drawn: {list(seeds)}")

        return Experiment(name, name, "E", "x", 20, run)

    rows = {name: row(name) for name in "ab"}
    for module in ("registry", "reproduction_page"):
        monkeypatch.setattr(f"sar_lab.research.papers.{module}.experiments", lambda: rows)
    monkeypatch.setattr("sar_lab.research.papers.registry.peer_studies", lambda: {"c": row("c")})
    command = ("lab", "run", "all", "--quick", "--out", str(tmp_path))
    with pytest.raises(RuntimeError, match="killed"):
        run_here(*command)
    run_here(*command)
    assert ran == ["a", "b", "b", "c"]
    done = re.sub(r"[\d.]+ s", "0 s", capsys.readouterr().out).splitlines()
    assert done[:2] == ["1 of 3: a, 0 s: an input, no claim", "2 of 3: b, 0 s: an input, no claim"]
    assert done[3] == "3 rows: 0 s of processors, 0 s now"
    kept = json.loads((tmp_path / "reproduction" / "c.json").read_text())
    assert kept["ours"]["how"] == "drawn: [0, 1]", (
        "a quick run has two seeds, and studies are of all"
    )
    run_here(*command)
    assert len(ran) == 4
    run_here(*command, "--rerun")
    run_here("lab", "run", "a", "--quick", "--out", str(tmp_path))
    assert ran[4:] == ["a", "b", "c", "a"]
    run_here("lab", "run", "all", "--seeds", "3", "--out", str(tmp_path))
    assert ran[8:] == ["a", "b", "c"], "other seeds are another run"
    kept = json.loads((tmp_path / "reproduction" / "b.json").read_text())
    assert kept["ours"]["how"] == "drawn: [0, 1, 2]"
    (tmp_path / "reproduction" / "b.json").write_text("{")
    with pytest.raises(InputError, match=r"b\.json: is not a result"):
        run_here(*command)


def test_check_names_the_claims_that_are_not_as_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("lab", "run", "pftree-fig4", "--check", "--out", tmp_path / "new")
    assert sar_lab(*command).returncode == 0
    [stored] = (tmp_path / "new" / "reproduction").iterdir()
    row = json.loads(stored.read_text())
    row["ours"]["claims"][0]["holds"] = False
    stored.write_text(json.dumps(row))
    monkeypatch.setattr("sar_lab.research.papers.result_store.PAGES", tmp_path / "new")
    done = sar_lab(*command[:-1], tmp_path / "newer")
    assert done.returncode == 1 and done.stderr == (
        f"pftree-fig4: {row['ours']['claims'][0]['says']}: False is stored, now True\n"
    )


def run_here(*words: str) -> None:
    """In this process, where rows can be others."""
    app(list(words), standalone_mode=False)


def test_the_page_is_made_of_the_stored_rows_and_verdicts_follow_from_their_claims(
    tmp_path: Path,
) -> None:
    pages = Path(__file__).parents[2] / "sar_lab/research/pages"
    shutil.copytree(pages / "reproduction", tmp_path / "reproduction")
    page = (pages / "reproduction.md").read_text()
    assert write_page(tmp_path).read_text() == page
    for name in experiments():
        row = stored_result(pages, name)
        if row is None:
            assert re.search(rf"Not run: .*\b{name}\b", page)
            continue
        claims = [Claim(**claim) for claim in row["ours"]["claims"]]
        line = verdict(claims, row["ours"]["because"], row["ours"]["qualified"])
        assert row["verdict"].startswith(line), name
        assert not row["picture"] or (pages / row["picture"]).exists()
        for claim in claims:
            assert f"| {claim.answer} |" in row["table"]


def test_tables_of_pages_are_the_stored_ones() -> None:
    rows = [stored_result(PAGES, name) for name in experiments() | peer_studies()]
    stored: dict[str, list[list[str]]] = {}
    for table in (each for row in rows if row for each in row["ours"]["tables"]):
        head, *lines = ResultTable(table["head"], table["rows"]).lines()
        stored.setdefault(head, []).append(lines)
    found = 0
    for page in sorted(PAGES.glob("*.md")):
        for text in re.findall(r"^\|.*\n(?:\|.*\n)*", page.read_text(), re.MULTILINE):
            head, *lines = text.splitlines()
            found += head in stored
            assert head not in stored or lines in stored[head], f"{page.name}: {head}"
    assert found > 50


def test_a_row_is_judged_again_from_its_draws_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fig4, "SIDES", (4, 16))
    rows = [run_row(experiment("routing-keys-fig4"), [0, 1], tmp_path)]
    monkeypatch.setattr(fig4, "largest", None)
    rows.append(run_row(experiment("routing-keys-fig4"), [0, 1], tmp_path, judge=True))
    assert rows[0] == rows[1]
    monkeypatch.setattr("sar_lab.research.papers.result_store.PAGES", tmp_path)
    clone = run_row(experiment("routing-keys-fig4"), [0, 1], tmp_path / "clone", judge=True)
    assert clone["ours"] == rows[0]["ours"], "the repository's draws serve where OUT has none"


class Nested(NamedTuple):
    ways: dict[tuple[str, int], list[float]]
    most: float | None


@dataclass(frozen=True)
class Record:
    names: tuple[str, ...]
    both: tuple[Nested | None, bool]


def test_draws_come_back_as_they_were_measured(tmp_path: Path) -> None:
    given = Record(("a", "b"), (Nested({("x", 1): [1.5, 1 / 3]}, None), True))

    @measured
    def draw(seed: int) -> Record:
        return given

    kept = begin({})
    first = draw(1)
    begin(json.loads(json.dumps(kept)))
    assert draw(1) == first
    assert first.both[0] == Nested({("x", 1): [1.5, 0.3333333333]}, None)


def test_draws_of_other_code_are_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As were those of routing-keys-fig7, which kept a verdict that its code no longer gave."""
    monkeypatch.setattr(fig4, "SIDES", (4, 16))
    monkeypatch.setattr("sar_lab.research.papers.result_store.PAGES", tmp_path)
    row = experiment("routing-keys-fig4")
    first = run_row(row, [0, 1], tmp_path)
    assert not first["stale"]
    assert run_row(row, [0, 1], tmp_path, judge=True, fresh=True) == first
    path = tmp_path / "draws" / "routing-keys-fig4.json"
    kept = json.loads(path.read_text())
    module = "sar_lab.research.engines.keys_printed"
    assert module in kept["code"]["largest_of"]
    kept["code"]["largest_of"][module] = "before"
    draw = "largest_of(16, [0, 1])"
    right = kept["draws"][draw]
    kept["draws"][draw] = [[[engine, 99] for engine, _ in each] for each in right]
    path.write_text(json.dumps(kept))
    judged = run_row(row, [0, 1], tmp_path, judge=True)
    assert judged["stale"] == {"largest_of": [module]} and judged["ours"] != first["ours"]
    command = ("lab", "run", "routing-keys-fig4", "--seeds", "2", "--judge", "--out", str(tmp_path))
    run_here(*command)
    said = capsys.readouterr().err
    assert said == (
        f"routing-keys-fig4: stale draws of largest_of: {module} changed since; "
        "`sar-lab lab run routing-keys-fig4` measures them again\n"
    )
    fresh = run_row(row, [0, 1], tmp_path, judge=True, fresh=True)
    assert fresh["stale"] == judged["stale"] and fresh["ours"] == first["ours"]
    assert not run_row(row, [0, 1], tmp_path, judge=True)["stale"], "what made them is kept"
    path.write_text(json.dumps(kept["draws"] | {draw: right}))
    old = run_row(row, [0, 1], tmp_path, judge=True)
    assert old["stale"] == {"largest_of": []} and old["ours"] == first["ours"]
    path.write_text(json.dumps(kept["draws"] | {draw: right[0][:1]}))
    with pytest.raises(InputError, match=r"draw largest_of\(16, \[0, 1\]\) is not what"):
        run_row(row, [0, 1], tmp_path, judge=True)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(InputError, match=r"fig4\.json: is not a result of `lab run`"):
        run_row(row, [0, 1], tmp_path, judge=True)


def test_only_what_measures_makes_draws_stale() -> None:
    """Not comments, claims and labels, but what the measuring function calls, in other modules,
    too."""
    code = roots_of(fig4.largest_of, "largest_of(16, [0])")["largest_of"]
    assert {fig4.__name__, "sar_agent.routing.keys.shift"} <= code.keys()
    assert not any(name.endswith((".claims", ".pictures", ".outcome")) for name in code)
    named = roots_of(fig4.largest_of, "largest_of('pftree-ext', 'none')")
    assert named.keys() == {"largest_of", "engine pftree-ext"}
    assert "sar_agent.routing.pftree" in named["engine pftree-ext"]
    code = roots_of(keys_runs.worst_of, "worst_of('dmodk')")["worst_of"]
    assert "sar_agent.routing.dmodk" in code
    assert "sar_agent.routing.sar_plus" not in code, "the loader names it in a message alone"


def test_a_ratio_near_1_is_judged_by_its_distance_from_1() -> None:
    """1.07 is printed: neither 1.23, three times the effect, nor 1.0, none, is near it."""
    for ours, holds in ((1.23, False), (1.0, False), (1.08, True), (1.06, True)):
        assert value("x", 1.07, ours, NEAR, ratio=True).holds is holds
        assert value("x", 1.07, ours, NEAR).holds
    assert value("x", 0.5, 0.41, NEAR, ratio=True).holds, "1 is not near 0.5"
    assert not value("x", 0.883, 0.98, NEAR, ratio=True).holds


def test_a_share_counts_numbers_of_papers_that_no_qualifier_is_about() -> None:
    def row(name: str, qualified: str, *numbers: tuple[str, str, bool]) -> dict[str, Any]:
        claims = [
            {"says": s, "published": p, "holds": h, "kind": "printed", "order": False}
            for s, p, h in numbers
        ]
        return {"name": name, "ours": {"claims": claims, "qualified": qualified}}

    words = "with a fitted rule"
    four = [("256 nodes, pFTree-Ext", "2.5", True), ("128 nodes, pFTree-Ext", "2", True)]
    rows = [
        row(
            "pftree-table4", words, *four, ("128 nodes, pFTree", "31", False), ("least", "1", True)
        ),
        row("sar-fig2", words, ("peak", "60", True)),
    ]
    rows[1]["ours"]["claims"].append(rows[1]["ours"]["claims"][0] | {"kind": "derived"})
    assert share_of(rows, ()) == (
        "Of 4 printed numbers (0 and 1 left out) 3 hold, 1 (25%) without a qualifier."
    )
    assert "of 3 printed numbers (0 and 1 left out) 2 hold, 1" in share_of(rows, ("sar-fig2",))
