"""Whatever has become of the folder of compiled kernels: a command's answer is right."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from pickle import UnpicklingError

import numba
import pytest
from numba.core.caching import IndexDataCacheFile

from sar_agent import __version__
from sar_agent.agent.outcome import Result
from sar_agent.util.kernels import kernel, kernel_part
from tests.worlds.agent_world import World

KERNEL = """
from sar_agent.util.kernels import kernel

@kernel
def twice(x):
    return 2 * x
"""
COMMAND = """
import typer
from sar_agent.commands.program import make_program, run_program

app = make_program("sar-agent", "")

@app.command()
def double() -> None:
    import kernel
    print(kernel.twice(21), *(sum(numbers.values()) for numbers in kernel.twice.compiled.stats[1:]))

run_program(app)
"""
NAME = f"kernels-{__version__}"


def run(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Prints the kernel's answer, hits and misses."""
    return subprocess.run(
        [sys.executable, "command.py", "double"],
        env=os.environ
        | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
        | variables,
        cwd=folder,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each test leaves kernels that can be loaded."""
    folder = tmp_path_factory.mktemp("kernel")
    (folder / "kernel.py").write_text(KERNEL)
    (folder / "command.py").write_text(COMMAND)
    assert run(folder).stdout == "42 0 1\n"
    assert run(folder).stdout == "42 1 0\n"
    return folder


def index_of_an_older_release() -> bytes:
    """An index whose keys name a class of a module that is gone."""
    gone = b"csar_agent.routing.gone\nKernel\n."
    return pickle.dumps(numba.__version__, protocol=-1) + gone


@pytest.mark.parametrize("what", ["moved module", "cut index", "cut code"])
def test_files_that_cannot_be_loaded_are_compiled_again(kernels: Path, what: str) -> None:
    (index,), (code,) = (list((kernels / "cache").rglob(f"*.{end}")) for end in ("nbi", "nbc"))
    if what == "moved module":
        index.write_bytes(index_of_an_older_release())
    else:
        cut = index if what == "cut index" else code
        cut.write_bytes(cut.read_bytes()[:-20])
    done = run(kernels)
    assert (done.returncode, done.stdout) == (0, "42 0 1\n"), done.stderr
    assert done.stderr.startswith(f"sar-agent: {kernels}/cache/{NAME}: compiled kernels could not")
    assert done.stderr.count("\n") == 1, "one sentence, and no traceback"
    assert run(kernels).stdout == "42 1 0\n", "and it is kept again"


def test_kernels_of_the_package_serve_every_user(kernels: Path, tmp_path: Path) -> None:
    shared, home = kernels / "cache", {"HOME": str(tmp_path), "XDG_CACHE_HOME": ""}
    shared.chmod(0o755)
    own = tmp_path / ".cache/sar-agent" / NAME
    (shared / NAME / "sar.lock").symlink_to("away")  # root's, which others cannot read
    told = {"SAR_AGENT_KERNELS": str(shared), "NUMBA_CACHE_DIR": ""} | home
    done = run(kernels, **told)
    assert (done.stdout, done.stderr) == ("42 1 0\n", ""), "nothing was compiled"
    assert list(own.rglob("*.nbc")), "they were copied"
    for path in (own, own.parent):
        path.rename(tmp_path / path.name)
    shared.chmod(0o777)
    assert run(kernels, **told).stdout == "42 0 1\n", "anybody may write there"
    shared.chmod(0o755)


def test_a_user_without_a_home_is_served_and_told_once(kernels: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "tmp").mkdir()
    nowhere = str(tmp_path / "file/deeper")
    done = run(
        kernels,
        SAR_AGENT_KERNELS=str(kernels / "cache"),
        NUMBA_CACHE_DIR=nowhere,
        TMPDIR=str(tmp_path / "tmp"),
    )
    assert (done.returncode, done.stdout) == (0, "42 1 0\n"), "with the package's kernels"
    assert done.stderr.count("\n") == 1
    assert "compiled kernels cannot be kept (Not a directory)" in done.stderr
    assert not list((tmp_path / "tmp").iterdir()), "its temporary folder is gone"


def test_a_part_of_kernels_can_be_called_from_python() -> None:
    """Compiled, it would have no wrapper for Python: a call would be a segmentation fault."""

    @kernel_part
    def double(x: int) -> int:
        return 2 * x

    @kernel
    def whole(x: int) -> int:
        return double(x)

    assert double(21) == whole(21) == double(21) == 42


def test_a_pass_leaves_broken_kernels_to_a_new_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the daemon, too; and only once, so that it does not start for ever."""
    (tmp_path / "x.nbi").write_bytes(b"cut")

    def broken(*_: object) -> None:
        IndexDataCacheFile(str(tmp_path), "x", None).load("key")  # type: ignore[no-untyped-call]

    agent = World(tmp_path).agent
    monkeypatch.setattr(agent, "_pass", broken)
    with pytest.raises(UnpicklingError):
        agent.pass_once()
    monkeypatch.setenv("SAR_AGENT_KERNELS_DISCARDED", "folder")
    assert agent.pass_once().result is Result.FAILED
