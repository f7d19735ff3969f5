"""Stand-ins for squeue, which prints given jobs in any format that it is asked for, and sinfo."""

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


_SINFO = """#!{python}
import json
given = json.load(open({jobs!r}))
now = [job["%N"] for job in given["jobs"]]
for nodes in given["nodes"]:
    if nodes not in now:
        print(nodes + "|idle|batch")
for nodes in now:
    print(nodes + "|allocated|batch")
"""


def fake_squeue(folder: Path, jobs: Sequence[dict[str, str]], delay: float = 0.0) -> str:
    """The path of an executable that answers with `jobs` (by squeue's format letters: `%i`, …)
    after `delay` seconds. Call again with the same folder to change what it says. `fake-sinfo`
    beside it shows the nodes of all jobs that there ever were.
    """
    given, data = folder / "fake-squeue.next", folder / "fake-squeue.json"
    rows = [_DEFAULTS | dict(job) for job in jobs]
    before = json.loads(data.read_text())["nodes"] if data.exists() else []
    nodes = sorted({*before, *(row["%N"] for row in rows)})
    given.write_text(json.dumps({"delay": delay, "jobs": rows, "nodes": nodes}))
    given.replace(data)  # whole at any moment: somebody may read it
    for name, script in (("fake-squeue", _SCRIPT), ("fake-sinfo", _SINFO)):
        path = folder / name
        if not path.exists():  # a program that runs cannot be written
            path.write_text(script.format(python=sys.executable, jobs=str(data)))
            path.chmod(0o755)
    return str(folder / "fake-squeue")
