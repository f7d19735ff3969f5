"""Shell blocks of the documentation, and how they are run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

BLOCK = re.compile(r"^<!-- (run|prints|file)(?:: (.+?))? -->\n```\w*\n(.*?)^```$", re.M | re.S)


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """(kind, argument, content) in the order of the page."""
    return [(m[1], m[2] or "", m[3]) for m in BLOCK.finditer(page.read_text())]


def run(script: str, folder: Path, *extra_path: Path) -> str:
    """The output of a shell script that calls `sar-agent` and `sar-lab` as a reader would."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for package in ("sar_agent", "sar_lab"):
        command = programs / package.replace("_", "-")
        command.write_text(
            # As pip writes it: processes that a command starts import this file, not run it.
            f"#!{sys.executable}\nfrom {package}.cli import main\n\nif __name__ == '__main__':\n"
            "    main()\n"
        )
        command.chmod(0o755)
    python = programs / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    if not (folder / "docs").exists():
        (folder / "docs").symlink_to(ROOT / "docs")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(map(str, [ROOT, *extra_path])),
            "COLUMNS": "100",
        },
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout
