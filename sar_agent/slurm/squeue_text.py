"""squeue's output in pipe format: one job per line, columns separated by `|`.

These layouts are read:
- the nine columns of `HEADER` below;
- the same nine, then uid, raw number and planned nodes: the layout of our own poll;
- the nine and a tenth, the reason (`%r`);
- any other, if the first line names its columns as squeue's header does (JOBID, STATE or ST,
  NODELIST, and optionally PARTITION, USER, START_TIME, COMMENT, SCHEDNODES).
The nodes of a pending job are those that Slurm plans to give it (SCHEDNODES).
A comment is free text and may hold `|`, so columns are counted from both ends of a line.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from sar_agent.errors import InputError
from sar_agent.jobs.record import PENDING, JobRecord, traffic_hint
from sar_agent.jobs.source import jobs_of_file
from sar_agent.slurm.states import RUNNING_STATES, STATE_CODES, STATES
from sar_agent.util.hostlist import expand
from sar_agent.util.plural import plural

FORMAT = "%i|%T|%N|%P|%u|%a|%D|%S|%k"
LIVE_FORMAT = f"{FORMAT}|%U|%A|%Y"
"""The layout of our own poll: it adds the owner's uid, the number by which hooks name the job, and
the nodes that Slurm plans for a pending one."""
HEADER = "JOBID|STATE|NODELIST|PARTITION|USER|ACCOUNT|NODES|START_TIME|COMMENT"
"""The header that squeue prints for FORMAT without `-h`."""

log = logging.getLogger(__name__)
_STATE = re.compile("[A-Z][A-Z_]{1,40}")
_NO_TIME = ("", "N/A", "Unknown", "(null)", "None", "0")
_ID = re.compile(r"\d{1,18}(?:_(?:\d{1,18}|\[[^\]]*\]?)|\+\d{1,18})?")
_WHOLE = re.compile(r"\d{1,18}")
_SAVE = f"save it with: squeue -h -o '{FORMAT}'"
_CLUSTER = re.compile(r"CLUSTER: [^|]*")
"""What squeue -M prints above the jobs of each cluster."""
_HEADER_LINES = 5
"""Lines among which the header is."""


class UnknownState(InputError):
    """A job in a state of a later Slurm; whether it holds nodes and sends is not known."""


class Columns(NamedTuple):
    """Their number, and the index of each by its long name."""

    width: int
    places: dict[str, int]

    def of(self, fields: list[str], name: str) -> str:
        """The stripped field; empty where there is no such column."""
        place = self.places.get(name)
        return "" if place is None else fields[place].strip()


_SHORT = {"ST": "STATE", "NODELIST(REASON)": "NODELIST", "START": "START_TIME"}
"""Other names of columns; the long ones win."""


def _layout(names: list[str]) -> Columns:
    places = {name: place for place, name in reversed([*enumerate(names)])}  # the first of several
    short = {_SHORT[name]: place for name, place in places.items() if name in _SHORT}
    return Columns(len(names), short | places)


_OURS = _layout(HEADER.split("|"))
LIVE = _layout([*HEADER.split("|"), "UID", "RAW", "SCHEDNODES"])
_WITH_REASON = _layout([*HEADER.split("|"), "REASON"])


def parse_squeue_pipe(
    text: str,
    source: str | Path | None = None,
    states: Collection[str] = RUNNING_STATES,
    hostless: bool = False,
) -> tuple[JobRecord, ...]:
    """The jobs of a file in pipe format that are in one of `states` and, but for `hostless`, hold
    nodes.

    Components of a heterogeneous job are merged. Times without a zone are local time, as squeue
    prints them. Lines that are not a job are passed over, jobs in states that are not known here
    are left out, and times that cannot be read count as unknown; each is logged once. Raises
    `InputError` with `source` and the line for the first line that is not a job line, where half of
    the lines are none.
    """
    lines, clusters, cluster = list[tuple[int, str]](), dict[int, str](), ""
    for number, line in enumerate(text.splitlines(), 1):
        if _CLUSTER.fullmatch(line.strip()):
            cluster = line.partition(":")[2].strip()
        elif line.strip():
            lines.append((number, line))
            clusters[number] = cluster
    layout = _OURS
    heads = [place for place, (_, line) in enumerate(lines[:_HEADER_LINES]) if _names_columns(line)]
    if heads:  # with -M again for each cluster
        number, header = lines[heads[0]]
        layout = _layout(_columns(header))
        if not {"STATE", "NODELIST"} <= layout.places.keys():
            raise InputError("the header names no state or no node list", file=source, line=number)
        lines = [each for each in lines if _columns(each[1]) != _columns(header)]
    elif lines and all(line.count("|") >= _WITH_REASON.width - 1 for _, line in lines):
        layout = _WITH_REASON
    records, bad = list[JobRecord](), list[InputError]()
    unknown, times, of = list[str](), list[str](), list[str]()
    for number, line in lines:
        try:
            record = parse_line(line, layout, states, hostless)
        except UnknownState as error:
            unknown.append(f"line {number}: {error.what}")
            if len(unknown) == len(lines):
                raise
        except InputError as error:
            bad.append(InputError(error.what, file=source, line=number, remedy=error.remedy))
        else:
            if record and record.start is None:
                start = layout.of(_split(line, layout) or [], "START_TIME")
                times += [] if start in _NO_TIME else [f"line {number}: {start[:40]!r}"]
            if record:
                records.append(record)
                of.append(clusters[number])
    where = f"{source}: " if source else ""
    if unknown:
        log.warning(
            "%s%d jobs in states that are not known here are left out (%s)",
            where, len(unknown), unknown[0],
        )  # fmt: skip
    if times:
        log.warning(
            "%s%d start times cannot be read and count as unknown (%s); with "
            "SLURM_TIME_FORMAT=standard squeue prints them so that they can",
            where, len(times), times[0],
        )  # fmt: skip
    return jobs_of_file(_set_apart(records, of, where), bad, len(lines))


def _set_apart(records: list[JobRecord], clusters: list[str], where: str) -> list[JobRecord]:
    """Where two clusters have a job of one id, each gets its cluster: `beta:100`."""
    seen: dict[str, set[str]] = {}
    for record, cluster in zip(records, clusters, strict=True):
        seen.setdefault(record.id.partition("+")[0], set()).add(cluster)
    twice = [job for job, of in seen.items() if len(of) > 1]
    if twice:
        log.warning(
            "%s%s of several clusters; each job gets its cluster's name (%s:%s)",
            where, plural(len(twice), "job id is", "job ids are"), min(seen[twice[0]] - {""}),
            twice[0],
        )  # fmt: skip
    return [
        record._replace(id=f"{cluster}:{record.id}")
        if cluster and len(seen[record.id.partition("+")[0]]) > 1
        else record
        for record, cluster in zip(records, clusters, strict=True)
    ]


def squeue_pipe(records: Iterable[JobRecord]) -> str:
    """The text, with a header, from which `parse_squeue_pipe` reads these records again, but for
    uids and plain numbers."""
    lines = [HEADER]
    for job in records:
        began = "N/A" if job.start is None else f"{job.start:.0f}"
        hint = f"sar:{job.traffic}" if job.traffic else ""
        words = (job.id, job.state, ",".join(job.hosts), job.partition, job.user, "")
        lines.append("|".join((*words, str(len(job.hosts)), began, hint)))
    return "\n".join(lines) + "\n"


def _columns(line: str) -> list[str]:
    return [name.strip().upper() for name in line.split("|")]


def _names_columns(line: str) -> bool:
    return "JOBID" in _columns(line)


def parse_line(
    line: str, layout: Columns, states: Collection[str], hostless: bool = False
) -> JobRecord | None:
    """One line's job with the id as printed (`9+1` is not merged); None if it is not in `states`,
    or has no nodes and is not to be `hostless`. Raises `InputError` (without file and line) if this
    is not a job line.
    """
    fields = _split(line, layout)
    if fields is None:
        raise InputError(f"{line[:80]!r} is not a job line of {layout.width} columns", remedy=_SAVE)
    identity, state = layout.of(fields, "JOBID"), layout.of(fields, "STATE")
    state = STATE_CODES.get(state, state)
    if identity in STATES or identity in STATE_CODES:
        what = f"the state {identity} stands where the job's id should: the columns have another"
        raise InputError(f"{what} order", remedy=_SAVE)
    if not _ID.fullmatch(identity):
        raise InputError(f"{identity[:40]!r} is not a Slurm job id", remedy=_SAVE)
    if state not in STATES:
        what = f"job {identity}: {state[:40]!r} is not a Slurm job state"
        raise UnknownState(what) if _STATE.fullmatch(state) else InputError(what)
    if state not in states:
        return None
    nodes = _known(layout.of(fields, "SCHEDNODES" if state == PENDING else "NODELIST"))
    if not nodes and not hostless:
        return None
    uid, raw = layout.of(fields, "UID"), layout.of(fields, "RAW")
    return JobRecord(
        identity,
        expand(nodes) if nodes else (),
        state,
        layout.of(fields, "USER"),
        layout.of(fields, "PARTITION"),
        _seconds(layout.of(fields, "START_TIME")),
        traffic_hint(_known(layout.of(fields, "COMMENT"))),
        int(uid) if _WHOLE.fullmatch(uid) else None,
        (raw,) if raw.isdecimal() else (),
    )


def _split(line: str, layout: Columns) -> list[str] | None:
    """The line's columns, with `|` inside the comment; None if there are too few or too many."""
    fields = line.split("|")
    extra, comment = len(fields) - layout.width, layout.places.get("COMMENT")
    if extra > 0 and comment is not None:
        end = comment + extra + 1
        fields[comment:end] = ["|".join(fields[comment:end])]
        extra = 0
    return None if extra else fields


def _known(field: str) -> str:
    return "" if field in ("(null)", "N/A", "None assigned") else field


@lru_cache(maxsize=16384)  # as `expand`: a smaller one than the queue would never hit
def _seconds(field: str) -> float | None:
    """Unix seconds from `1795221989` (our poll sets SLURM_TIME_FORMAT=%s) or local ISO time; None
    for all else."""
    if field in _NO_TIME:
        return None
    with suppress(ValueError, OverflowError):  # also of what only looks like a digit: ²
        return float(field) if field.isdigit() else datetime.fromisoformat(field).timestamp()
    return None
