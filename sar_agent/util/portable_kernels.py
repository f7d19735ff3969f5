"""Compiled kernels that a package can bring along: for any processor of the architecture, and valid
wherever the same sources are installed.

numba's own cache belongs to one processor type, one folder and the time stamps of the sources. Here
a kernel is found by its module's name and the contents of all sources of its package. It is
compiled with `NUMBA_CPU_NAME=generic` (`deploy/packages/kernels`). Native ones are 1.2 to 1.9 times
as fast.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from numba.core import caching

GENERIC = "generic", ""
"""Name and features of the processor for which these kernels are compiled."""
_IndexFile: Any = caching.IndexDataCacheFile


class _GenericCodegen(NamedTuple):
    """Stands for the code generator where numba makes the key of a kernel."""

    triple: str

    def magic_tuple(self) -> tuple[str, str, str]:
        return self.triple, *GENERIC


def load_portable(folder: Path, kernel: Any, sig: Any, codegen: Any) -> Any:
    """What `keep_portable` has written of numba's cache `kernel`; None where it is not there."""
    generic = _GenericCodegen(codegen.magic_tuple()[0])
    return _file(folder, kernel).load(kernel._index_key(sig, generic))


def keep_portable(folder: Path, kernel: Any, sig: Any, compiled: Any) -> None:
    """Writes a kernel that was compiled just now into `folder`. Raises `ValueError` where it was
    compiled for a certain processor."""
    if compiled.codegen.magic_tuple()[1:] != GENERIC:
        raise ValueError("compiled for this processor; set NUMBA_CPU_NAME=generic")
    if not kernel._impl.check_cachable(compiled):
        return
    file = _file(folder, kernel)
    path = Path(file._cache_path)
    path.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # an index is read, extended and replaced
        file.save(kernel._index_key(sig, compiled.codegen), kernel._impl.reduce(compiled))
    finally:
        os.close(descriptor)


def _file(folder: Path, kernel: Any) -> Any:
    module = kernel._py_func.__module__
    return _IndexFile(
        cache_path=str(folder / module),
        filename_base=kernel._impl.filename_base,
        source_stamp=_sources(module.partition(".")[0]),
    )


@cache
def _sources(package: str) -> str:
    """Digest of the sources of a package and of sar_agent, whose kernels others call."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted({package, "sar_agent"}):
        spec = importlib.util.find_spec(name)
        folder = Path(spec.origin).parent if spec and spec.origin else Path()
        for path in sorted(folder.rglob("*.py")) if (folder / "__init__.py").exists() else ():
            digest.update(f"{name}/{path.relative_to(folder)}\0".encode())
            digest.update(hashlib.blake2b(path.read_bytes()).digest())
    return digest.hexdigest()
