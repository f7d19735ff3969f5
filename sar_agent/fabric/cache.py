"""Caches the last parsed fabric on disk, so that the next start need not parse the same text.

Parsing 1,728 hosts takes a fifth of the run time of `sar-agent once`; the arrays are read back in a
few milliseconds. A cache that is missing, damaged or of another text is ignored, and so is one that
cannot be written: nothing here can fail.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from sar_agent import __version__
from sar_agent.errors import InputError
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.spec import GROUP
from sar_agent.util.extensions import extensions, package_of
from sar_agent.util.owned_files import PRIVATE, make_folder
from sar_agent.util.text_files import write_bytes

_WHEN = re.compile(r"^# Topology file: generated on .*$", re.MULTILINE)


def cached_fabric(path: Path, text: str, mapper: HostMapper, parse: Callable[[], Fabric]) -> Fabric:
    """What `parse()` makes of `text` with `mapper`, read from the file `path` where that holds it.

    The line that says when ibnetdiscover ran is not compared. The versions of all packages that
    register fabric formats are, since another version may read the same text differently. Raises
    what `parse` raises.
    """
    shape = [field.name for field in fields(Fabric)]
    readers = [(point.name, package_of(point)) for point in extensions(GROUP)]
    given = repr((__version__, readers, shape, mapper, _WHEN.sub("", text, count=1)))
    key = hashlib.blake2b(given.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    if (cached := _load(path, key)) is not None:
        return cached
    fabric = parse()
    with suppress(OSError, InputError):
        _store(path, key, fabric)
    return fabric


def _load(path: Path, key: str) -> Fabric | None:
    try:
        with np.load(path, allow_pickle=False) as stored:
            others = json.loads(stored["others"].tobytes())
            if others.pop("key") != key:
                return None
            values: dict[str, Any] = {n: stored[n] for n in stored.files if n != "others"}
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError):
        return None
    values |= {name: tuple(v) if isinstance(v, list) else v for name, v in others.items()}
    return Fabric(**values)


def _store(path: Path, key: str, fabric: Fabric) -> None:
    values = {field.name: getattr(fabric, field.name) for field in fields(Fabric)}
    arrays = {name: v for name, v in values.items() if isinstance(v, np.ndarray)}
    others = {"key": key} | {name: v for name, v in values.items() if name not in arrays}
    arrays["others"] = np.frombuffer(json.dumps(others).encode(), np.uint8)
    packed = io.BytesIO()  # zipfile raises other errors than OSError on a full disk
    np.savez(packed, allow_pickle=False, **arrays)
    make_folder(path.parent)
    write_bytes(path, packed.getvalue(), PRIVATE)
