"""SimGrid's end times of flows, asked of Debian's package, which is for the system's Python."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from sar_lab.fluid.flow_links import FlowLinks
from sar_lab.fluid.flow_steps import Flows

JUDGE = Path(__file__).parent / "simgrid_judge.py"
PYTHON = "/usr/bin/python3"


def has_simgrid() -> bool:
    try:
        return not subprocess.run([PYTHON, "-c", "import simgrid"], capture_output=True).returncode
    except FileNotFoundError:
        return False


def judged(links: FlowLinks, flows: Flows) -> list[float]:
    """SimGrid's end times, seconds."""
    question = {
        "capacity": links.capacity.tolist(),
        "paths": [links.link[a:b].tolist() for a, b in zip(links.path, links.stop, strict=True)],
        "size": flows.size.tolist(),
        "step": flows.step.tolist(),
        "last": flows.last.tolist(),
        "wait": flows.wait.tolist(),
    }
    done = subprocess.run(
        [PYTHON, JUDGE], input=json.dumps(question), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found: list[float] = json.loads(done.stdout)
    return found
