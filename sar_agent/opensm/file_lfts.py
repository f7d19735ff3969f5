"""`lfts_file`: the file that OpenSM's engine `file` reads at each heavy sweep, as we write it.

It begins with comments, which OpenSM skips: the number of the plan, its engine, and a digest of all
lines below. So a restarted agent knows its own file, and never overwrites one that
somebody else wrote or edited. While an install is not confirmed, the file that it replaces lies
beside it (`.before`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.formats.guid_tables import GuidTables
from sar_agent.formats.lfts_dump import lfts_text, parse_tables
from sar_agent.install.plan import Plan
from sar_agent.util.owned_files import READABLE, sync_folder
from sar_agent.util.text_files import disk_errors, write_bytes

_HEADER = re.compile(
    rb"# sar-agent: generation (\d{1,18}) of engine (\S{1,64}), tables ([0-9a-f]{32})\n"
)
_WARNING = (
    b'# OpenSM\'s routing engine "file" reads this file. sar-agent replaces it; do not edit it.\n'
)
OURS_ONLY = (
    "sar-agent replaces only what it wrote itself; move that file away, or set opensm.lfts_file to "
    "another path here and in opensm.conf"
)


@dataclass(frozen=True)
class LftsFile:
    """A file that we wrote, as it is on the disk."""

    generation: int
    engine: str
    identity: str
    """32 hex digits: digest of all lines below the header."""
    tables: GuidTables


def plan_text(plan: Plan) -> bytes:
    """`lfts_file` for a plan of one lane, at all LID offsets that the fabric's LMC gives; offsets
    beyond the plan's repeat its first."""
    fabric = plan.fabric
    guids = [*fabric.terminal_guid.tolist(), *fabric.switch_guid.tolist()]
    lines = lfts_text(
        fabric, plan.routes.egress, fabric.lmc, lambda d: f"portguid 0x{guids[d]:016x}:"
    )
    body = _WARNING + b"".join(lines)
    engine = re.sub(r"\s", "_", plan.routes.engine)[:64] or "unknown"
    head = f"# sar-agent: generation {plan.generation} of engine {engine}, tables {_digest(body)}\n"
    return head.encode() + body


def _digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def read_lfts_file(path: Path) -> LftsFile | None:
    """The file that we wrote; None where there is no file. Raises `InputError` where somebody else
    wrote or edited it, and where it cannot be read."""
    with disk_errors("cannot be read", path, "fix the folder"):
        if not path.exists():
            return None
        data = path.read_bytes()
    header = _HEADER.match(data)
    if header is None:
        raise InputError("was not written by sar-agent", file=path, remedy=OURS_ONLY)
    identity = header[3].decode()
    if _digest(data[header.end() :]) != identity:
        raise InputError("was edited after sar-agent wrote it", file=path, remedy=OURS_ONLY)
    return LftsFile(int(header[1]), header[2].decode(), identity, parse_tables(data, path))


class LftsSwap:
    """Replaces `path` so that the replacement can be undone, also by the next process."""

    def __init__(self, path: Path) -> None:
        self.path, self.before = path, path.with_name(path.name + ".before")

    @property
    def pending(self) -> bool:
        """Whether a replacement is neither confirmed nor undone."""
        return self.before.exists()

    def replace(self, data: bytes) -> None:
        """Raises `InputError` where the folder does not take the files."""
        old = self.path.read_bytes() if self.path.exists() else b""
        write_bytes(self.before, old, READABLE)
        try:
            write_bytes(self.path, data, READABLE)
        except InputError:
            with suppress(OSError):
                self.before.unlink()
            raise

    def confirm(self) -> None:
        """The new file stays."""
        self._change(self.before.unlink)

    def undo(self) -> None:
        """The old file is back; where there was none, there is none."""
        if not self.before.stat().st_size:
            self._change(lambda: self.path.unlink(missing_ok=True))
            self._change(self.before.unlink)
        else:
            self._change(lambda: self.before.replace(self.path))

    def _change(self, act: Callable[[], object]) -> None:
        with disk_errors("cannot be replaced", self.path, "fix the folder"):
            act()
            sync_folder(self.path.parent)
