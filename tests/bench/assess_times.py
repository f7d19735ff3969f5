"""The time of `assess`: at first use on a machine, from a package's kernels, and on many hosts."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sar_agent.fabric.spec import load_fabric
from tests.bench.bench_fabrics import LARGEST, size_of
from tests.bench.table import Table, goal
from tests.bench.timing import Times, repeat

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
SMALL = (
    "--fabric",
    str(EXAMPLES / "cluster.ibnetdiscover"),
    "--jobs",
    str(EXAMPLES / "squeue.txt"),
)
LARGE = ("--fabric", LARGEST, "--jobs", "mix:1")
ASSESS = [sys.executable, "-c", "from sar_agent.cli import main; main()", "assess"]
GENERIC = {"NUMBA_CPU_NAME": "generic"}


def tables(full: bool) -> Iterator[Table]:
    """`assess`, a process from its start to its end."""
    with tempfile.TemporaryDirectory(prefix="sar-bench-") as name:
        folder = Path(name)
        package, own = folder / "package", folder / "own"
        new = (folder / f"new-{number}" for number in range(99))
        assess(folder, package, SMALL, GENERIC)
        shared = GENERIC | {"SAR_AGENT_KERNELS": str(package)}
        first = repeat(lambda: assess(folder, next(new), SMALL), 3)
        shipped = repeat(lambda: assess(folder, next(new), SMALL, shared), 3)
        for what in (SMALL, LARGE):
            assess(folder, own, what)
        again = repeat(lambda: assess(folder, own, SMALL), 3)
        large = repeat(lambda: assess(folder, own, LARGE), 3)
    table = Table(
        "`assess`",
        ("the network", "kernels", "seconds"),
        "Six engines, their checks and measures, and the page; a process from its start to its "
        "end. *The package's*: compiled for any processor, as debs and rpms bring them.",
    )
    rows: list[tuple[str, str, Times, float | None]] = [
        ("docs/examples", "none: first use of a clone", first, 12),
        ("docs/examples", "the package's", shipped, 4),
        ("docs/examples", "compiled here", again, None),
        (size_of(load_fabric(LARGEST)), "compiled here", large, 4),
    ]
    for network, kernels, times, limit in rows:
        table.add(network, kernels, times.show(".2f"))
        if limit:
            table.goals.append(goal(f"{network}, kernels: {kernels}", times.median, limit, "s"))
    yield table


def assess(
    folder: Path, cache: Path, words: tuple[str, ...], more: dict[str, str] | None = None
) -> None:
    """Runs the command; kernels that it compiles go to `cache`."""
    subprocess.run(
        [*ASSESS, *words, "--out", str(folder / "report")],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)} | (more or {}),
        check=True,
        capture_output=True,
    )
