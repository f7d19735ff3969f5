"""The folder of compiled kernels, which numba is told by `NUMBA_CACHE_DIR`.

It is `kernels-VERSION` (`kernels-VERSION-generic` for any processor): in the folder that
`NUMBA_CACHE_DIR` named (a daemon's), beside the sources where they may be written to (a clone), in
`~/.cache/sar-agent`, or else a temporary one. A folder serves one version, since numba notices no
kernel whose callee has changed in another file, and cannot read an index that names modules which
have moved. A new folder begins with the kernels that the package brought along.

numba's errors about files end the very call that wanted a kernel, and nothing public says "go on
without". So a folder on a full disk is not used in the first place (its kernels are, from a
temporary folder). Where a file was cut short, or the disk became full meanwhile, the command ends
with a sentence that names the folder to remove.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import sar_agent

log = logging.getLogger(__name__)
SHARED = "SAR_AGENT_KERNELS"
"""Variable with the folder of kernels that were compiled when the package was installed. It is only
read, and must belong to root or to this user."""
LEAST_BYTES, LEAST_FILES = 64 << 20, 1000
"""Room for all kernels: 25 MB in 500 files. A folder where there is less is not used."""
_NUMBA = "NUMBA_CACHE_DIR"
_CPU = os.environ.get("NUMBA_CPU_NAME")
_NAME = f"kernels-{sar_agent.__version__}" + (f"-{_CPU}" if _CPU else "")


def use_cache() -> Path | None:
    """Set `NUMBA_CACHE_DIR`, for this process and those that it starts, and return it; None where
    nothing can be written. Must be called before numba is imported."""
    shared = os.environ.get(SHARED)
    usable = shared and _trusted(Path(shared))
    seed = _folder(Path(shared or "")) if usable else None
    problem: OSError | None = None
    for parent in _parents(packaged=bool(shared)):
        folder = _folder(parent)
        try:
            return _used(folder, seed)
        except OSError as error:
            problem = problem or error
            seed = folder if folder.is_dir() else seed
    log.warning(
        "%s: compiled kernels cannot be kept (%s); the next start compiles them again, unless "
        "NUMBA_CACHE_DIR names a folder where you may write",
        getattr(problem, "filename", None) or "no folder",
        (problem and (problem.strerror or problem)) or "this user has no home",
    )
    try:
        parent = Path(tempfile.mkdtemp(prefix="sar-agent-kernels-"))
        atexit.register(partial(shutil.rmtree, parent, ignore_errors=True))
        return _used(_folder(parent), seed)
    except OSError:
        return None


def damage_of(error: BaseException) -> str:
    """A sentence where `error` is one of numba's about a file of kernels; else empty."""
    if not is_of_cache(error):
        return ""
    folder = os.environ.get(_NUMBA)
    return (
        f"{folder}: compiled kernels cannot be read or written ({error!r}); remove the folder, or "
        f"name another with {_NUMBA}"
    )


def is_made_here(folder: Path) -> bool:
    """Whether `use_cache` chose the folder, here or in the process that started this one."""
    return folder.name == _NAME


def _folder(parent: Path) -> Path:
    return parent if is_made_here(parent) else parent / _NAME


def _parents(packaged: bool) -> Iterator[Path]:
    if told := os.environ.get(_NUMBA):
        yield Path(told)
        return
    if not packaged:
        yield Path(sar_agent.__file__).parent / "__pycache__"
    try:
        home = Path.home()
    except RuntimeError:  # a user whom nobody knows
        return
    yield Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "sar-agent"


def _make(folder: Path, seed: Path | None) -> None:
    """Make the folder, where it is not there; at once, since other processes may want it, too."""
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix="new-", dir=folder.parent))
    try:
        if seed and seed.is_dir():
            locks = shutil.ignore_patterns("*.lock")  # which their owner alone may read
            shutil.copytree(
                seed, new, ignore=locks, dirs_exist_ok=True, copy_function=shutil.copyfile
            )
        new.chmod(0o755)
        new.rename(folder)
    except OSError:
        shutil.rmtree(new, ignore_errors=True)
        if not folder.is_dir():  # another process was first
            raise


def _require_room(folder: Path) -> None:
    """Raises `OSError` where nothing can be written to the folder, or not enough."""
    tempfile.TemporaryFile(dir=folder).close()
    found = os.statvfs(folder)
    room = found.f_bavail * found.f_frsize >= LEAST_BYTES
    if not room or (found.f_files and found.f_favail < LEAST_FILES):
        raise OSError(28, "No space left on device", str(folder))


def _used(folder: Path, seed: Path | None) -> Path:
    _make(folder, seed)
    _require_room(folder)
    os.environ[_NUMBA] = str(folder)
    return folder


def is_of_cache(error: BaseException | None) -> bool:
    """Whether numba's module about files of kernels raised the error, or one that it was made
    of."""
    while error is not None:
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_globals.get("__name__") == "numba.core.caching":
                return True
            trace = trace.tb_next
        error = error.__cause__ or error.__context__
    return False


def _trusted(folder: Path) -> bool:
    """Whether nobody but root and this user can have written there: a kernel is machine code."""
    try:
        stat = folder.stat()
    except OSError:
        return False
    return stat.st_uid in (0, os.geteuid()) and not stat.st_mode & 0o022
