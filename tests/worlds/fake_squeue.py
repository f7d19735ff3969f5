"""A stand-in for squeue: prints given jobs in whatever format it is asked for."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

_DEFAULTS = {
    "%i": "1",
    "%T": "RUNNING",
    "%N": "n1",
    "%P": "batch",
    "%u": "root",
    "%a": "(null)",
    "%D": "1",
    "%S": "1795221989",
    "%k": "(null)",
    "%U": "0",
    "%A": "1",
    "%Y": "",
}

_SCRIPT = """#!{python}
import json, os, sys, time
given = json.load(open({jobs!r}))
time.sleep(given["delay"])
form = os.environ["SQUEUE_FORMAT"]
for job in given["jobs"]:
    row = form
    for key, value in job.items():
        row = row.replace(key, value)
    print(row)
"""


def fake_squeue(folder: Path, jobs: Sequence[dict[str, str]], delay: float = 0.0) -> str:
    """The path of an executable that answers with `jobs` (by squeue's format letters: `%i`, …)
    after `delay` seconds. Call again with the same folder to change what it says.
    """
    given, data = folder / "fake-squeue.next", folder / "fake-squeue.json"
    given.write_text(json.dumps({"delay": delay, "jobs": [_DEFAULTS | dict(job) for job in jobs]}))
    given.replace(data)  # whole at any moment: somebody may read it
    path = folder / "fake-squeue"
    if not path.exists():  # a program that runs cannot be written
        path.write_text(_SCRIPT.format(python=sys.executable, jobs=str(data)))
        path.chmod(0o755)
    return str(path)
