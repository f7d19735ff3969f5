"""Service levels that path records may have assigned to jobs which still run.

A connection keeps the level of the path record that it asked for once. So with lanes by path, every
set of levels that was in force since the oldest job began takes part in deadlocks. Two sets are
kept, on disk before a host can be assigned their levels: what is in force now, and all that was in
force before. The older one is forgotten once no job runs that began before its end, which is that
of the newest levels in it: it may claim more levels than were assigned, never fewer.
"""

from __future__ import annotations

import io
import logging
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.align import Nodes, align
from sar_agent.fabric.model import U16
from sar_agent.formats.conversion import EVERY_LEVEL
from sar_agent.routing.routes import Routes
from sar_agent.util.owned_files import PRIVATE
from sar_agent.util.text_files import write_bytes

log = logging.getLogger(__name__)
MOST_ERAS = 2
"""Now and before; a file of an older release may have four."""
UNTIL_SAID = 1e18
"""Unix seconds: the end of a set that is not in force by itself, until `end_others` says it."""
LARGEST_FILE = 1 << 30
"""Bytes of a file's arrays."""


@dataclass(eq=False)
class _Era:
    """Bit sets of levels by LID offset, destination and source switch. Most destinations have one
    for all switches, as on a shelter's or a key's offset."""

    nodes: NDArray[np.uint64]
    """GUIDs of destinations: terminals, then switches."""
    terminals: int
    all: U16
    """uint16[O, D]: levels that are assigned at all switches."""
    at: NDArray[np.int64]
    """int64[K]: where (offset · D + destination) switches differ."""
    rows: U16
    """uint16[K, S]: levels that are assigned there besides."""
    until: float = np.inf
    """Unix seconds; infinite while it is in force."""
    foreign: bool = False
    """Whether another engine assigned the levels, which are not known then."""

    def same(self, other: _Era) -> bool:
        """Whether both assign the same levels, at whatever times."""
        parts = ("nodes", "all", "at", "rows", "foreign")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in parts)

    def bits(self) -> U16:
        """uint16[O, D, S]."""
        switches = len(self.nodes) - self.terminals
        out = np.repeat(self.all[:, :, None], switches, axis=2)
        out.reshape(-1, switches)[self.at] |= self.rows
        return out

    def on(self, nodes: NDArray[np.uint64], terminals: int, offsets: int) -> U16:
        """uint16[O, D, S] on the indices of other nodes; no level for nodes that are not known."""
        bits = self.bits()
        if np.array_equal(self.nodes, nodes) and len(bits) == offsets:
            return bits
        out = np.zeros((offsets, len(nodes), len(nodes) - terminals), np.uint16)
        theirs = Nodes(self.nodes, self.nodes[self.terminals :])
        at = align(Nodes(nodes, nodes[terminals:]), theirs)
        for offset in range(min(offsets, len(bits))):
            known = bits[offset][np.ix_(at.theirs_d, at.theirs_s)]
            out[offset][np.ix_(at.ours_d, at.ours_s)] = known
        return out


class AssignedLevels:
    """`levels.bin` in `folder`. What cannot be written is logged and kept in memory only; `now`
    returns Unix seconds."""

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self.path, self.now = folder / "levels.bin", now
        self._eras = self._read()
        self._new: _Era | None = None
        self._newest = -np.inf
        """A moment after the start of the youngest job so far, by Slurm's clock."""

    @property
    def all_assigned(self) -> int:
        """Bit set of all levels that may have been assigned anywhere: not to be dropped."""
        if any(era.foreign for era in self._eras):
            return EVERY_LEVEL
        parts = [part for era in self._eras for part in (era.all, era.rows)]
        return int(np.bitwise_or.reduce([1, *(np.bitwise_or.reduce(p, None) for p in parts)]))

    def assigned(self, fabric: Fabric, routes: Routes) -> U16 | None:
        """uint16[O, D, S] on the indices of `fabric`: bit sets of levels that jobs may have been
        assigned; None where no level decides about a lane of `routes`."""
        ended = any(era.until < np.inf for era in self._eras)
        if routes.service_level is None or not (ended or len(self._eras) > 1):
            return None  # only the levels in force were ever assigned
        union = np.zeros(routes.egress.shape, np.uint16)
        for era in self._eras:
            union |= era.on(fabric.nodes.destinations, fabric.terminals, len(union))
        return union

    def begin(self, fabric: Fabric, before: Routes, after: Routes, *, ours: bool) -> None:
        """`after` is about to come into force instead of `before` (`ours`: the agent's): hosts may
        be assigned its levels."""
        if not self._eras and ours and before.service_level is after.service_level is None:
            return  # only level 0 was ever assigned
        self._new = None
        for era in (_era(fabric, before, foreign=not ours), new := _era(fabric, after)):
            if not any(era.same(known) for known in self._eras):
                self._eras.append(era)
                self._new = era if era is new else None
        self._save()

    def undo_begin(self) -> None:
        """The routes of the last `begin` did not come into force."""
        self._eras = [era for era in self._eras if era is not self._new]
        self._save()

    def end_others(self, fabric: Fabric, routes: Routes) -> None:
        """`routes` are in force and nothing else is under way: the eras of other routes end."""
        if not self._eras:
            return
        # Slurm's clock may be ahead of this machine's, and starts are by Slurm's. **Weak spot:** a
        # job that nobody has seen yet.
        now, in_force = max(self.now(), self._newest), _era(fabric, routes)
        for era in self._eras:
            era.until = np.inf if era.same(in_force) else min(era.until, now)
        self._save()

    def forget_ended(self, starts: Iterable[float | None]) -> None:
        """Forget levels that no running job was assigned; `starts` are Unix seconds of all running
        jobs, None where that is not known."""
        starts = list(starts)
        self._newest = max([self._newest, *(at + 1 for at in starts if at is not None)])
        oldest = min((-np.inf if at is None else at for at in starts), default=np.inf)
        kept = [era for era in self._eras if era.until == np.inf or era.until > oldest]
        if not any(era.foreign or era.all.max(initial=0) > 1 or len(era.at) for era in kept):
            kept = []  # level 0 alone is what everybody has anyway
        if len(kept) < len(self._eras):
            self._eras = kept
            self._save()

    def _save(self) -> None:
        self._eras.sort(key=lambda era: era.until)
        while len(self._eras) > MOST_ERAS:
            self._eras[:2] = [_both(*self._eras[:2])]
        arrays: dict[str, Any] = {}
        for number, era in enumerate(self._eras):
            arrays |= {f"{name}{number}": value for name, value in vars(era).items()}
        out = io.BytesIO()
        np.savez(out, **arrays)
        try:
            with suppress(OSError):  # writing says it better
                self.path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(self.path, zlib.compress(out.getbuffer(), 1), PRIVATE)
        except InputError as error:
            log.warning("%s; service levels assigned to jobs are kept in memory only", error)

    def _read(self) -> list[_Era]:
        try:
            return read_eras(self.path.read_bytes())
        except FileNotFoundError:
            return []
        except (OSError, InputError) as error:
            log.warning(
                "%s: cannot be used (%s); service levels of connections that were made before the "
                "routes in force are not followed",
                self.path,
                error,
            )
            return []


def read_eras(image: bytes) -> list[_Era]:
    """The sets of a file. Raises `InputError` for a file that no agent wrote."""
    try:
        reader = zlib.decompressobj()
        archive = reader.decompress(image, LARGEST_FILE)
        if not reader.eof:
            raise ValueError("it is too large, or cut off")
        if any(file.compress_type for file in zipfile.ZipFile(io.BytesIO(archive)).infolist()):
            raise ValueError("its arrays are packed twice, so their size is not known")
        found = np.load(io.BytesIO(archive))
        eras = [
            _Era(
                found[f"nodes{n}"],
                int(found[f"terminals{n}"]),
                found[f"all{n}"],
                found[f"at{n}"],
                found[f"rows{n}"],
                float(found[f"until{n}"]),
                bool(found[f"foreign{n}"]),
            )
            for n in range(len(found.files) // 7)
        ]
        for era in eras:
            _examine(era)
    except (ArithmeticError, EOFError, LookupError, MemoryError, OSError, TypeError, ValueError,
            zipfile.BadZipFile, zlib.error) as error:  # fmt: skip
        raise InputError(str(error)) from error
    return eras


def _examine(era: _Era) -> None:
    """Raises `ValueError` where arrays do not fit each other."""
    kinds = [str(part.dtype) for part in (era.nodes, era.all, era.at, era.rows)]
    if kinds != ["uint64", "uint16", "int64", "uint16"] or era.all.ndim != 2:
        raise ValueError("its arrays are of other types")
    switches = len(era.nodes) - era.terminals
    fits = era.all.shape[1:] == era.nodes.shape and 0 <= era.terminals <= len(era.nodes)
    fits &= era.at.ndim == 1 and era.rows.shape == (len(era.at), switches)
    if not fits or (len(era.at) and not 0 <= era.at.min() <= era.at.max() < era.all.size):
        raise ValueError("its arrays do not fit each other")
    if np.isnan(era.until):
        raise ValueError("its times are not numbers")


def _era(fabric: Fabric, routes: Routes, *, foreign: bool = False) -> _Era:
    offsets, destinations, switches = routes.egress.shape
    if routes.service_level is None:
        common = np.ones((offsets, destinations), np.uint16)
        at, rows = np.empty(0, np.int64), np.empty((0, switches), np.uint16)
    else:
        level = routes.service_level.reshape(-1, switches)
        at = np.flatnonzero((level != level[:, :1]).any(axis=1))
        common = np.left_shift(1, level[:, 0].astype(np.uint16), dtype=np.uint16)
        common[at] = 0
        common = common.reshape(offsets, destinations)
        rows = np.left_shift(1, level[at].astype(np.uint16), dtype=np.uint16)
    nodes = fabric.nodes.destinations
    return _Era(nodes, fabric.terminals, common, at, rows, foreign=foreign)


def _both(old: _Era, new: _Era) -> _Era:
    """Both eras as one, until the later ends, for the nodes of both: a host that is not in the
    fabric now may come back with its connections."""
    terminals = _joined(new.nodes[: new.terminals], old.nodes[: old.terminals])
    switches = _joined(new.nodes[new.terminals :], old.nodes[old.terminals :])
    nodes, offsets = np.concatenate([terminals, switches]), max(len(new.all), len(old.all))
    bits = new.on(nodes, len(terminals), offsets) | old.on(nodes, len(terminals), offsets)
    flat = bits.reshape(-1, bits.shape[2])
    at = np.flatnonzero((flat != flat[:, :1]).any(axis=1))
    common = flat[:, 0].copy()
    common[at] = 0
    whole = common.reshape(bits.shape[:2])
    foreign = old.foreign or new.foreign
    until = min(new.until, UNTIL_SAID)  # no engine has assigned just these
    return _Era(nodes, len(terminals), whole, at, flat[at], until, foreign)


def _joined(ours: NDArray[np.uint64], theirs: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`ours`, then what only `theirs` has, in their order."""
    return np.concatenate([ours, theirs[~np.isin(theirs, ours)]])
