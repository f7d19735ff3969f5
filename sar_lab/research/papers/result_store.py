"""Stores a JSON file and a picture for each row: a killed run continues with the next row, and a
row that runs again replaces its files."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sar_agent.errors import InputError
from sar_lab.research.papers.claims import RULES
from sar_lab.research.papers.registry import Experiment

StoredResult = dict[str, Any]
"""The JSON object of a row."""
PICTURES = Path("images/reproduction")
"""The folder of pictures, relative to the page."""
QUICK = 2
"""Seeds of a quick run, the fewest that can tell two results apart. From 6 on a median has a 95 %
confidence interval, so a quick run's numbers are no results."""


def seeds_of(experiment: Experiment, first: int, wanted: int | None, quick: bool) -> range:
    """The requested number of seeds, or else the row's own."""
    usual = min(experiment.SEEDS, QUICK) if quick else experiment.SEEDS
    return range(first, first + (wanted if wanted and experiment.SEEDS else usual))


def command(experiment: Experiment, seeds: Sequence[int]) -> str:
    """The command that computes these numbers again."""
    words = ["sar-lab lab run", experiment.NAME]
    words += [f"--seeds {len(seeds)}"] if len(seeds) != experiment.SEEDS else []
    words += [f"--seed {seeds[0]}"] if seeds and seeds[0] else []
    return " ".join(words)


def run_row(experiment: Experiment, seeds: Sequence[int], folder: Path) -> StoredResult:
    """Runs a row and stores its result in `folder`."""
    began = time.perf_counter()
    pictures = folder / PICTURES
    pictures.mkdir(parents=True, exist_ok=True)
    result = experiment.run(seeds, pictures)
    row: StoredResult = {
        "name": experiment.NAME,
        "where": experiment.WHERE,
        "class": experiment.CLASS,
        "rules": RULES,
        "published": experiment.PUBLISHED,
        "verdict": result.verdict,
        "table": result.table,
        "ours": result.ours,
        "picture": result.picture.relative_to(folder).as_posix() if result.picture else "",
        "seeds": list(seeds),
        "command": command(experiment, seeds),
        "seconds": round(time.perf_counter() - began, 1),
    }
    path = _file(folder, experiment.NAME)
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


def _file(folder: Path, name: str) -> Path:
    return folder / "reproduction" / f"{name}.json"
