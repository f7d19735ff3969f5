"""Stores a JSON file and a picture for each row: a killed run continues with the next row, and a
row that runs again replaces its files."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from sar_agent.errors import InputError
from sar_lab.research.papers.claims import RULES
from sar_lab.research.papers.pictures import save
from sar_lab.research.papers.registry import Experiment

StoredResult = dict[str, Any]
"""The JSON object of a row."""
PICTURES = Path("images/reproduction")
"""The folder of pictures, relative to the page."""
PAGES = Path(str(files("sar_lab.research"))) / "pages"
"""The results of the repository."""
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


def run_row(experiment: Experiment, seeds: Sequence[int], folder: Path) -> StoredResult:
    """Runs a row and stores its result in `folder`."""
    began = time.perf_counter()
    result = experiment.run(seeds)
    ours, picture = result.json(), PICTURES / f"{experiment.name}.png"
    drawn = result.draw is not None and save(result.draw, folder / picture, result.size)
    if result.draw and not drawn:
        ours["how"] += " The picture needs `pip install 'sar-lab[papers]'`."
    row: StoredResult = {
        "name": experiment.name,
        "where": experiment.where,
        "class": experiment.kind,
        "rules": RULES,
        "published": experiment.published,
        "verdict": result.verdict,
        "table": result.table,
        "ours": ours,
        "picture": picture.as_posix() if drawn else "",
        "seeds": list(seeds),
        "command": command(experiment, seeds),
        "seconds": round(time.perf_counter() - began, 1),
    }
    path = _file(folder, experiment.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    # A rename is atomic: after a kill the row is complete or missing.
    part = path.with_suffix(".part")
    part.write_text(json.dumps(row, indent=1, ensure_ascii=False) + "\n")
    part.replace(path)
    return row


def stored_result(folder: Path, name: str) -> StoredResult | None:
    """The stored result of a row, if any. Raises `InputError` where the file is damaged."""
    path = _file(folder, name)
    try:
        row: StoredResult = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise InputError("is not a result of `lab run`", file=path, remedy="delete it") from error
    return row


def differences(row: StoredResult, folder: Path) -> list[str]:
    """A line for each claim that does not hold as in the result that `folder` has of this row."""
    stored = stored_result(folder, row["name"])
    if stored is None:
        return [f"{row['name']}: {folder} has no result"]
    before = {claim["says"]: claim["holds"] for claim in stored["ours"]["claims"]}
    now = {claim["says"]: claim["holds"] for claim in row["ours"]["claims"]}
    return [
        f"{row['name']}: {says}: {before.get(says, 'no such claim')} is stored, now {now.get(says)}"
        for says in sorted(before.keys() | now.keys())
        if before.get(says, "") != now.get(says, "")
    ]


def _file(folder: Path, name: str) -> Path:
    return folder / "reproduction" / f"{name}.json"
