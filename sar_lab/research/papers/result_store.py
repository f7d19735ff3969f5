"""Stores a JSON file, the raw draws and a picture for each row: a killed run continues with the
next row, and a row that runs again replaces its files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from sar_agent.errors import InputError
from sar_lab.replay.pools import workers_alive
from sar_lab.research.papers.claims import RULES
from sar_lab.research.papers.draw_code import Code
from sar_lab.research.papers.measured import Draws, NotMeasured, Stale, begin, stale
from sar_lab.research.papers.pictures import save
from sar_lab.research.papers.registry import EMULATED, Experiment, experiment

StoredResult = dict[str, Any]
"""The JSON object of a row."""
PICTURES = Path("images/reproduction")
"""The folder of pictures, relative to the page."""
DRAWS = "draws"
"""The folder of raw draws."""
PAGES = Path(str(files("sar_lab.research"))) / "pages"
"""The results of the repository."""
MOST_MODULES = 4
"""The most that a line names."""
QUICK = 2
"""Seeds of a quick run, the fewest that can tell two results apart. From 6 on a median has a 95 %
confidence interval, so a quick run's numbers are no results."""


def seeds_of(experiment: Experiment, first: int, wanted: int | None, quick: bool) -> range:
    """The requested number of seeds, or else the row's own."""
    usual = min(experiment.seeds, QUICK) if quick else experiment.seeds
    return range(first, first + (wanted if wanted and experiment.seeds else usual))


def command(experiment: Experiment, seeds: Sequence[int]) -> str:
    """The command that computes these numbers again."""
    words = ["sar-lab lab run", experiment.name]
    words += [f"--seeds {len(seeds)}"] if len(seeds) != experiment.seeds else []
    words += [f"--seed {seeds[0]}"] if seeds and seeds[0] else []
    return " ".join(words)


def run_row(
    row_of: Experiment,
    seeds: Sequence[int],
    folder: Path,
    judge: bool = False,
    fresh: bool = False,
    recorded: bool = False,
) -> StoredResult:
    """Runs a row and stores its result in `folder`. To judge it again, its draws are taken that
    `folder` or else the repository keeps, and only what they do not have is measured, and what
    other code made if they are to be `fresh`. What is stale is in the result that is given, not in
    the stored one. An emulated row is made of its draws alone where `recorded` is asked for, and
    raises `NotMeasured` where one is missing. `seconds` of the result are those of processors
    (which other work does not lengthen)."""
    recorded = recorded and row_of.kind == EMULATED
    began, before = sum(os.times()[:4]), stored_result(folder, row_of.name)
    draws: Draws = {}
    code: dict[str, Code] = {}
    if judge or recorded:
        known = (_read(_file(each, row_of.name, DRAWS)) for each in (folder, PAGES))
        kept = next((each for each in known if each), {})
        # Until 0.2 a file had the draws alone, and did not say what code made them.
        draws, code = (kept["draws"], kept["code"]) if "draws" in kept else (kept, code)
    had = dict(draws)

    def keep() -> None:
        if draws:
            text = json.dumps({"code": code, "draws": draws}, separators=(",", ":"))
            _write(_file(folder, row_of.name, DRAWS), text)

    begin(draws, keep, code, fresh and not recorded, recorded)
    try:
        result = row_of.run(seeds)
    finally:
        keep()
    ours, picture = result.json(), PICTURES / f"{row_of.name}.svg"
    drawn = result.draw is not None and save(result.draw, folder / picture, result.size)
    if result.draw and not drawn:
        ours["how"] += " The picture needs `pip install 'sar-lab[papers]'`."
    seconds = round(sum(os.times()[:4]) - began, 1)
    row: StoredResult = {
        "name": row_of.name,
        "where": row_of.where,
        "class": row_of.kind,
        "rules": RULES,
        "published": row_of.published,
        "verdict": result.verdict,
        "table": result.table,
        "ours": ours,
        "picture": picture.as_posix() if drawn else "",
        "seeds": list(seeds),
        "command": command(row_of, seeds),
        "seconds": before["seconds"] if before and had and draws == had else seconds,
    }
    _write(_file(folder, row_of.name), json.dumps(row, indent=1, ensure_ascii=False))
    return row | {"stale": stale()}


def stored_result(folder: Path, name: str) -> StoredResult | None:
    """The stored result of a row, if any. Raises `InputError` where the file is damaged."""
    return _read(_file(folder, name))


def run_rows(
    rows: Sequence[tuple[Experiment, Sequence[int]]],
    folder: Path,
    judge: bool,
    processes: int,
    fresh: bool = False,
    recorded: bool = False,
) -> Iterator[StoredResult]:
    """Runs rows in so many processes at a time, and gives them in the order in which they end;
    those that were never measured are left out."""
    how = (folder, judge, fresh, recorded)
    if processes == 1:
        yield from filter(None, (_row_if_measured(row_of, seeds, *how) for row_of, seeds in rows))
        return
    with workers_alive(), ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        found = [pool.submit(_run_named, each.name, seeds, *how) for each, seeds in rows]
        yield from filter(None, (each.result() for each in as_completed(found)))


def _run_named(name: str, seeds: Sequence[int], *how: Any) -> StoredResult | None:
    return _row_if_measured(experiment(name), seeds, *how)


def _row_if_measured(row_of: Experiment, seeds: Sequence[int], *how: Any) -> StoredResult | None:
    try:
        return run_row(row_of, seeds, *how)
    except NotMeasured:
        return None


def stale_line(row: StoredResult, fresh: bool) -> str:
    """Which code made the row's draws stale; empty where none did."""
    found: Stale = row.get("stale", {})
    if not found:
        return ""
    modules = sorted({module for each in found.values() for module in each})
    some = ", ".join(modules[:MOST_MODULES]) + (
        f" and {len(modules) - MOST_MODULES} more" if len(modules) > MOST_MODULES else ""
    )
    why = f"{some} changed since" if modules else "they do not say by which code"
    fresh = fresh and row["class"] != EMULATED
    now = "measured again" if fresh else f"`sar-lab lab run {row['name']}` measures them again"
    return f"{row['name']}: stale draws of {', '.join(found)}: {why}; {now}"


def differences(row: StoredResult, folder: Path) -> list[str]:
    """A line for each claim that does not hold as in the result that `folder` has of this row."""
    stored = stored_result(folder, row["name"])
    if stored is None:
        return [f"{row['name']}: {folder} has no result"]
    before, now = _answers(stored), _answers(row)
    return [
        f"{row['name']}: {says}: {before.get(says, 'no such claim')} is stored, now {now.get(says)}"
        for says in sorted(before.keys() | now.keys())
        if before.get(says, "") != now.get(says, "")
    ]


def _answers(row: StoredResult) -> dict[str, bool | None]:
    """Sentence → whether it holds, also of the mechanisms as printed."""
    found = {claim["says"]: claim["holds"] for claim in row["ours"]["claims"]}
    for reading, claims in row["ours"]["as_printed"].items():
        found |= {f"{claim['says']} ({reading})": claim["holds"] for claim in claims}
    return found


def _file(folder: Path, name: str, kind: str = "reproduction") -> Path:
    return folder / kind / f"{name}.json"


def _read(path: Path) -> StoredResult | None:
    try:
        found: StoredResult = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise InputError("is not a result of `lab run`", file=path, remedy="delete it") from error
    return found


def _write(path: Path, text: str) -> None:
    """A rename is atomic: after a kill the file is complete or as before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(text + "\n")
    part.replace(path)
