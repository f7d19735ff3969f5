"""A numba cache that cannot be loaded is a miss, in every process of sar-agent."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numba
import pytest

KERNEL = """
from sar_agent.util.kernels import kernel

@kernel
def twice(x):
    return 2 * x
"""


def run(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    code = (
        "import kernel; print(kernel.twice(21), sum(kernel.twice.stats.cache_hits.values()), "
        "sum(kernel.twice.stats.cache_misses.values()))"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ
        | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
        | variables,
        cwd=folder,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each test leaves a cache that can be loaded."""
    folder = tmp_path_factory.mktemp("kernel")
    (folder / "kernel.py").write_text(KERNEL)
    assert run(folder).stdout == "42 0 1\n"
    assert run(folder).stdout == "42 1 0\n"
    return folder


def index_of_an_older_release() -> bytes:
    """An index whose keys name a class of a module that is gone."""
    gone = b"csar_agent.routing.gone\nKernel\n."
    return pickle.dumps(numba.__version__, protocol=-1) + gone


@pytest.mark.parametrize("what", ["moved module", "cut code"])
def test_a_cache_that_cannot_be_loaded_is_a_miss(kernel: Path, what: str) -> None:
    (index,), (code,) = (list((kernel / "cache").rglob(f"*.{end}")) for end in ("nbi", "nbc"))
    if what == "moved module":
        index.write_bytes(index_of_an_older_release())
    else:
        code.write_bytes(code.read_bytes()[:100])
    done = run(kernel)
    assert (done.returncode, done.stdout) == (0, "42 0 1\n"), done.stderr
    assert run(kernel).stdout == "42 1 0\n", "and it is kept again"


def test_kernels_of_the_package_serve_every_user(kernel: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    (kernel / "cache").rename(shared)
    shared.chmod(0o755)
    assert run(kernel, SAR_AGENT_KERNELS=str(shared)).stdout == "42 1 0\n"
    assert not list((kernel / "cache").rglob("*.nbc")), "nothing was compiled"
    shared.chmod(0o777)
    assert run(kernel, SAR_AGENT_KERNELS=str(shared)).stdout == "42 0 1\n", (
        "anybody may write there"
    )
