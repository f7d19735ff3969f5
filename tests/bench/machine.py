"""The machine and the programs of a measurement."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path


def machine() -> Iterator[tuple[str, str]]:
    """Pairs of a property and its value."""
    yield "CPU", _first(r"model name\s*: (.*)", "/proc/cpuinfo")
    yield "cores", str(os.cpu_count())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    yield "memory", f"{memory / 2**30:.0f} GB"
    yield "kernel", f"{platform.system()} {platform.release()}"
    yield "load average at the start", " ".join(f"{load:.2f}" for load in os.getloadavg())
    yield "Python", platform.python_version()
    for package in ("numba", "numpy"):
        yield package, version(package)
    for package in ("opensm", "ibsim-utils", "slurm-wlm"):
        yield package, _debian(package)


def _first(pattern: str, file: str) -> str:
    found = re.search(pattern, Path(file).read_text())
    return found[1] if found else "unknown"


def _debian(package: str) -> str:
    asked = ["dpkg-query", "--show", "--showformat=${Version}", package]
    try:
        return subprocess.run(asked, capture_output=True, text=True).stdout or "not installed"
    except FileNotFoundError:
        return "unknown"


def peak_mb(pid: int | str = "self") -> float:
    """The largest resident size of a process so far, in MB (2**20). getrusage does not serve: for a
    child it starts with the size of its parent."""
    found = re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) / 1024
