"""Kernels for any processor, which a package brings along (deploy/packages/kernels)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

KERNEL = """
from numba import njit
from sar_agent.util import kernel_cache

@njit(cache=True)
def twice(x):
    return 2 * x
"""
CODE = """
import sys
import packed.kernel as k
if "native" in sys.argv:
    k.kernel_cache.compile_natively()
hits = k.twice(21), k.twice.stats.cache_hits, k.twice.stats.cache_misses
print(hits[0], sum(hits[1].values()), sum(hits[2].values()))
"""


def run(
    folder: Path,
    *arguments: str,
    status: int = 0,
    shared: str = "",
    keep: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    own = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", CODE, *arguments],
        env=os.environ | own | {"SAR_AGENT_KERNELS": shared} | (keep or {}),
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stderr
    shutil.rmtree(folder / "cache", ignore_errors=True)
    return done


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """Where a package `packed` was built: its sources and the kernels compiled of them."""
    (tmp_path / "built" / "packed").mkdir(parents=True)
    (tmp_path / "built" / "packed" / "__init__.py").write_text("")
    (tmp_path / "built" / "packed" / "kernel.py").write_text(KERNEL)
    folder = tmp_path / "kernels"
    keep = {"SAR_AGENT_KEEP_KERNELS": str(folder), "NUMBA_CPU_NAME": "generic"}
    assert run(tmp_path / "built", keep=keep).stdout == "42 0 1\n"
    assert [path.name for path in folder.iterdir()] == ["packed.kernel"]
    return folder


def installed(kernels: Path) -> Path:
    """The same sources elsewhere, with other time stamps."""
    folder = kernels.parent / "installed"
    shutil.copytree(kernels.parent / "built" / "packed", folder / "packed")
    os.utime(folder / "packed" / "kernel.py", (1, 1))
    return folder


def test_they_serve_wherever_the_same_sources_are_installed(kernels: Path) -> None:
    folder = installed(kernels)
    before = {path: path.read_bytes() for path in kernels.rglob("*.nb?")}
    assert run(folder, shared=f"/nowhere:{kernels}").stdout == "42 1 0\n"
    assert run(folder, shared="").stdout == "42 0 1\n"
    assert before == {path: path.read_bytes() for path in kernels.rglob("*.nb?")}


def test_any_other_source_of_the_package_makes_them_a_miss(kernels: Path) -> None:
    folder = installed(kernels)
    (folder / "packed" / "callee.py").write_text("changed = True\n")
    assert run(folder, shared=str(kernels)).stdout == "42 0 1\n"


def test_native_kernels_are_compiled_where_they_are_wanted(kernels: Path) -> None:
    folder = installed(kernels)
    assert run(folder, "native", shared=str(kernels)).stdout == "42 0 1\n"


def test_kernels_that_anybody_could_have_written_are_not_taken(kernels: Path) -> None:
    folder = installed(kernels)
    kernels.chmod(0o777)
    assert run(folder, shared=str(kernels)).stdout == "42 0 1\n"


def test_kernels_of_one_processor_are_refused(kernels: Path) -> None:
    keep = {"SAR_AGENT_KEEP_KERNELS": str(kernels), "NUMBA_CPU_NAME": "x86-64-v3"}
    done = run(installed(kernels), status=1, keep=keep)
    assert "set NUMBA_CPU_NAME=generic" in done.stderr
