"""Whether OpenSM's dump can still tell which tables switches have.

OpenSM writes the file after each heavy sweep if its `log_flags` have 0x40, so in a fabric where
nothing changes an old file is right. It is not where OpenSM has swept since and nobody wrote: after
its own start, and after a change of the fabric. And where nothing was written for a week, in which
some node of most clusters was rebooted, a person should look.

**Weak spot:** the start of an OpenSM on another machine is not seen.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from sar_agent.formats.read_tables import DUMPS
from sar_agent.util.file_versions import version_of

SWEEP_SECONDS = 300.0
"""In which OpenSM has swept, and written its dump, after its start or a change of the fabric."""
OLD_SECONDS = 7 * 86400.0
"""In shadow mode a week is watched: tables from before it say nothing about it."""
PROCESSES = Path("/proc")
REMEDY = (
    "OpenSM writes it after each heavy sweep if its log_flags have 0x40; set them, and send OpenSM "
    "SIGHUP for a sweep, or write the file with dump_fts again"
)


def outdated(
    dump: str, written_at: float, changed_after: float = 0.0, *, ours: bool = False
) -> str:
    """Why the tables in the file `dump` may not be those of now, in a sentence; empty where there
    is no reason. Unix seconds: `changed_after` is the last time when the fabric was still another
    one, 0.0 where it was always the same. `ours`: they are known to be what the agent wrote."""
    now, started = time.time(), opensm_started()
    if written_at < started < now - SWEEP_SECONDS:
        why = f"OpenSM has started since, on {moment(started)}"
    elif written_at < changed_after < now - SWEEP_SECONDS:
        why = "the fabric has changed since"
    elif now - written_at > OLD_SECONDS and not ours:
        why = "nobody knows whether switches still have these tables"
    else:
        return ""
    return f"{dump}: the tables are {of_date(written_at)}, and {why}; {REMEDY}"


def of_date(written_at: float) -> str:
    """Such as `of 2026-10-19 03:00, 40 days ago`."""
    days = (time.time() - written_at) / 86400
    if days < 1:
        return f"of {moment(written_at)}"
    return f"of {moment(written_at)}, {days:.0f} day{'s' * (round(days) != 1)} ago"


def moment(at: float) -> str:
    """Local time."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def written_at(dump: Path) -> float:
    """When the file was written, or the newest dump in that folder, Unix seconds; 0.0 where there
    is none."""
    version = version_of(dump, DUMPS)
    return version.written_at if version else 0.0


def opensm_started() -> float:
    """When OpenSM was started on this machine, Unix seconds: the first, where several run; 0.0
    where none is seen."""
    starts = []
    for process in PROCESSES.iterdir():
        if not process.name.isdecimal():
            continue
        with suppress(OSError, ValueError, IndexError):  # it has ended, or is hidden
            if (process / "comm").read_text().startswith("opensm"):
                after_name = (process / "stat").read_text().rpartition(")")[2].split()
                starts.append(int(after_name[19]) / os.sysconf("SC_CLK_TCK"))
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return booted + min(starts) if starts else 0.0
