"""The programs as a user starts them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from sar_agent.cli import main
from sar_lab.cli import main as lab_main

TREE = "xgft:2;4,4;1,2"


def sar_agent(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """What the installed command does, without starting Python anew each time."""
    return _run(main, "sar-agent", *arguments)


def sar_lab(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The same of the other program."""
    return _run(lab_main, "sar-lab", *arguments)


def _run(
    program: Callable[[], None], name: str, *arguments: str | Path
) -> subprocess.CompletedProcess[str]:
    out, err = StringIO(), StringIO()
    before = sys.argv
    sys.argv = [name, *map(str, arguments)]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            program()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    finally:
        sys.argv = before
    return subprocess.CompletedProcess(sys.argv, code, out.getvalue(), err.getvalue())


def said(*arguments: str | Path) -> dict[str, object]:
    return _object(sar_agent(*arguments))


def lab_said(*arguments: str | Path) -> dict[str, object]:
    return _object(sar_lab(*arguments))


def _object(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found
