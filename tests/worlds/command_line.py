"""The commands as a user starts them."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from sar_agent.cli import main

TREE = "xgft:2;4,4;1,2"


def sar_agent(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """What the installed command does, without starting Python anew each time."""
    out, err = StringIO(), StringIO()
    before = sys.argv
    sys.argv = ["sar-agent", *map(str, arguments)]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    finally:
        sys.argv = before
    return subprocess.CompletedProcess(sys.argv, code, out.getvalue(), err.getvalue())


def said(*arguments: str | Path) -> dict[str, object]:
    done = sar_agent(*arguments)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found
