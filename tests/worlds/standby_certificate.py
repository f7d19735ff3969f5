"""The key and certificate of two agents, made by the command of docs/ha.md."""

from __future__ import annotations

import subprocess
from pathlib import Path

COMMAND = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 "
    "-subj /CN=sar-agent"
)


def certificate(path: Path) -> Path:
    """`path`, made."""
    words = [*COMMAND.split(), "-keyout", str(path), "-out", str(path)]
    subprocess.run(words, check=True, capture_output=True)
    path.chmod(0o640)
    return path
