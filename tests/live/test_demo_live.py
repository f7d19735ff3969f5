"""`make demo-live`, to its end and cut short."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sar_lab.live.requirements import PLUGIN
from tests.worlds.live.site import plugin

pytestmark = pytest.mark.live
COMMAND = [sys.executable, "-c", "from sar_lab.cli import main; main()", "demo-live"]


@pytest.fixture
def scratch() -> Iterator[dict[str, str]]:
    """An environment in which all that is left behind is left in a folder of ours; its path is
    short, since those of Unix sockets may have 107 characters."""
    named = {PLUGIN: str(plugin())}
    with tempfile.TemporaryDirectory(prefix="sar-") as folder:
        yield os.environ | named | {"TMPDIR": folder}


def test_the_whole_loop(scratch: dict[str, str]) -> None:
    done = subprocess.run(COMMAND, env=scratch, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr
    for line in (
        r"a real Slurm is up: slurmctld and 24 slurmd",
        r"the agent installed generation 1, because",
        r"OpenSM has engine sar in force",
        r"job \d+ started on n\[001,",
        r"because 1 multi-switch jobs? started, 0 ended: \d+ table entries changed, dark fiber",
        r"stays on one leaf switch",
        r"the cable at port 7 of leaf switch S1-0 is pulled",
        r"repaired generation \d+ itself; \d+ entries differ .*; the agent has checked the tables",
        r"the cable is back",
        r"in force at the end: engine sar, generation \d+, on all switches",
        r"ibdmchk on what OpenSM installed: 552 paths, no credit loops found",
        r"everything is stopped; every expected event happened",
    ):
        assert re.search(line, done.stdout), f"{line!r} is not in\n{done.stdout}"
    pulled = done.stdout.index("is pulled")
    assert "OpenSM has engine" not in done.stdout[pulled:], "the repair stays inside our engine"
    assert left_behind(scratch) == []


def test_ctrl_c(scratch: dict[str, str]) -> None:
    with subprocess.Popen(COMMAND, env=scratch, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout
        for line in demo.stdout:
            if "a real Slurm is up" in line:
                break
        time.sleep(1)
        demo.send_signal(signal.SIGINT)
        assert "interrupted; everything is stopped" in demo.stdout.read()
        assert demo.wait(30) == 130
    assert left_behind(scratch) == []


def left_behind(scratch: dict[str, str]) -> list[str]:
    """Files in the scratch folder, and processes whose environment or command names it."""
    folder = scratch["TMPDIR"]
    found = [path.name for path in Path(folder).iterdir()]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            known = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
        except OSError:  # it ended meanwhile, or is a zombie
            continue
        if folder.encode() in known:
            found.append(known.decode(errors="replace"))
    return found
