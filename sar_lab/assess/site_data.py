"""The data of a site: a fabric, jobs of one moment or of a history, and perhaps today's tables.

Only a fabric or a list of jobs that cannot be read at all is an error. Everything else that does
not fit is counted and listed in the report (`left_out`), because a report that hides it would
mislead."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sar_agent.demand.endpoints import mix_of_records, multi_switch_mix
from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.formats.read_tables import read_tables
from sar_agent.jobs import JobMix
from sar_agent.jobs.synthetic import FORMS, jobs_of_spec
from sar_agent.routing.routes import Routes
from sar_agent.slurm.job_files import read_jobs_file
from sar_agent.slurm.topology_check import compare_topology
from sar_agent.slurm.topology_files import read_topology, topology_in_use
from sar_agent.util.text_files import read_text
from sar_lab.history import LeftOut, PlacedHistory, place_history, read_history
from sar_lab.history.files import is_history
from sar_lab.history.job_history import EXAMPLES
from sar_lab.history.window import clock_words, within


@dataclass(frozen=True)
class SiteData:
    """The data of a site, mapped to its fabric."""

    fabric: Fabric
    mix: JobMix
    """The multi-switch jobs of the assessed moment."""
    jobs: int
    """The number of all jobs of that moment."""
    moment: str
    """A description of that moment."""
    placed: PlacedHistory | None
    today: Routes | None
    """The tables in force; None where none were given or they do not fit the fabric."""
    topology: tuple[str, ...] | None
    """One sentence for each difference of Slurm's topology; None where no file was given."""
    left_out: tuple[LeftOut, ...]
    remarks: tuple[str, ...]
    hosts: int = 0
    """The number of hosts of the jobs, whether they are in the fabric or not."""
    synthetic: bool = False
    """Whether the jobs are synthetic (`mix:SEED`, `blocks:SIZES`)."""
    pending: int = 0
    """The number of pending jobs in the list, where no other is in it and it tells."""


def read_site_data(
    fabric: Fabric,
    jobs: str | None,
    history: Path | None,
    routes: Path | None,
    topology: Path | None,
    stand_in: Sequence[str] = (),
    window: tuple[str | None, str | None] = (None, None),
) -> SiteData:
    """`jobs` is a job file, synthetic jobs (`mix:SEED`, …) or a history; without it, a moment of
    `history` is used. `stand_in` are remarks on the fabric for the report; `window` is the part of
    the history, as for `within`.

    Raises `InputError` where neither is given, one of them cannot be read, or a window is given
    without a history.
    """
    if jobs and history is None and not jobs.startswith(FORMS) and is_history(Path(jobs)):
        history, jobs = Path(jobs), None
    left: list[LeftOut] = []
    remarks = list(stand_in)
    remarks += [f"{fabric.name}: {note}" for note in fabric.notes[:EXAMPLES]]
    if history is None and any(window):
        raise InputError(
            "--from and --until need a job history",
            remedy="give --history FILE, or leave them out",
        )
    placed = place_history(within(read_history(history), *window), fabric) if history else None
    if placed:
        left += [*placed.history.left_out, *placed.left_out]
        remarks += placed.history.remarks
    if jobs:
        mix, count, moment, hosts = _snapshot(jobs, fabric, left)
    elif placed:
        hosts = len(placed.history.hosts)
        at = typical_moment(placed)
        mix, count = placed.mix_at(at), len(placed.history.running(at))
        moment = (
            f"{placed.history.day_of(at)} ({clock_words(placed.history)}) of {history}, when the "
            "number of hosts in jobs that span switches was at its median over the time in which "
            "any ran"
        )
    else:
        raise InputError("no jobs were given", remedy="give --jobs FILE or --history FILE")
    today = _tables(routes, fabric, left, remarks)
    differences = None if topology is None else _topology(topology, fabric, left)
    synthetic = jobs is not None and jobs.startswith(FORMS)
    return SiteData(
        fabric, mix, count, moment, placed, today, differences, tuple(left), tuple(remarks),
        hosts, synthetic, _pending(jobs) if jobs and not count else 0,
    )  # fmt: skip


def typical_moment(placed: PlacedHistory) -> float:
    """A moment at which the number of terminals in multi-switch jobs is its median over the time
    in which there is any: a record that is idle for most of the time has an answer, too."""
    times, busy = _busy(placed)
    if len(times) < 2:
        return placed.history.span[0]
    length = np.where(busy[:-1] > 0, np.diff(times), 0)
    order = np.argsort(busy[:-1], kind="stable")
    half = np.searchsorted(np.cumsum(length[order]), length.sum() / 2)
    return float(times[order[min(half, len(order) - 1)]])


def _busy(placed: PlacedHistory) -> tuple[np.ndarray, np.ndarray]:
    """(times float64[·], terminals in multi-switch jobs from then on int64[·])."""
    times = placed.change_times
    change = np.zeros(len(times) + 1, np.int64)
    for j, parts in enumerate(placed.parts):
        if ports := sum(len(part.terminals) for part in parts):
            change[np.searchsorted(times, placed.history.start[j])] += ports
            change[np.searchsorted(times, placed.history.end[j])] -= ports
    return times, np.cumsum(change)[: len(times)]


NOT_THERE = "that are not in the fabric"
MOST_UNKNOWN = 0.1
"""The share of the jobs' hosts that may be missing from the fabric; with more, no verdict."""


def unknown_hosts(given: SiteData) -> LeftOut | None:
    """The hosts of jobs that are not in the fabric, if they are too many for a verdict."""
    for left in given.left_out:
        lost = left.reason.startswith("hosts") and left.reason.endswith(NOT_THERE)
        if lost and left.count > MOST_UNKNOWN * given.hosts:
            return left
    return None


def _snapshot(jobs: str, fabric: Fabric, left: list[LeftOut]) -> tuple[JobMix, int, str, int]:
    if jobs.startswith(FORMS):
        drawn = jobs_of_spec(jobs, fabric)
        return multi_switch_mix(fabric, drawn), len(drawn), f"synthetic jobs, {jobs}", 0
    records = read_jobs_file(Path(jobs))
    mapped = mix_of_records(fabric, records)
    if bare := [record.id for record in records if not record.hosts]:
        left.append(LeftOut("running jobs without nodes", len(bare), tuple(bare[:EXAMPLES])))
    if unknown := sorted(mapped.unknown_hosts):
        what = f"hosts of running jobs {NOT_THERE}"
        left.append(LeftOut(what, len(unknown), tuple(unknown[:EXAMPLES])))
        lost = [r.id for r in records if r.hosts and not set(r.hosts) - mapped.unknown_hosts]
        if lost:
            what = "running jobs of which no host is in the fabric"
            left.append(LeftOut(what, len(lost), tuple(lost[:EXAMPLES])))
    hosts = len({host for record in records for host in record.hosts})
    return mapped.mix, len(records), f"the running jobs of {jobs}", hosts


def _pending(jobs: str) -> int:
    return len(
        re.findall(r"\|(?:PENDING|PD)\||\"PENDING\"", read_text(Path(jobs), may_be_empty=True))
    )


def _tables(
    path: Path | None, fabric: Fabric, left: list[LeftOut], remarks: list[str]
) -> Routes | None:
    if path is None:
        return None
    routes = read_tables(path, fabric, lambda left: remarks.append(f"{left}."))
    if routes.fabric_digest != fabric.digest:
        remarks.append(f"{path} was made for other nodes or cables than {fabric.name} has.")
    return routes


def _topology(path: Path, fabric: Fabric, left: list[LeftOut]) -> tuple[str, ...] | None:
    try:
        slurm = read_topology(topology_in_use(path))
    except InputError as error:
        left.append(LeftOut("files of Slurm's topology that cannot be read", 1, (str(error),)))
        return None
    leaf_of = {host: sorted(leaves)[0] for host, leaves in slurm.leaves_of.items()}
    return (*slurm.problems, *compare_topology(fabric, leaf_of))
