"""`place`: nodes for a job, running jobs that are spread out, pending jobs; nothing is changed."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from sar_agent.commands.announce import note
from sar_agent.commands.dump_inputs import AssumedOption, TodayOption, read_dumps
from sar_agent.commands.host_options import with_host_options
from sar_agent.commands.inputs import FabricOption, JsonOption, present, print_json
from sar_agent.commands.times import seconds_of
from sar_agent.util.plural import plural

if TYPE_CHECKING:
    from sar_agent.jobs.record import JobRecord
    from sar_agent.reports.placement import Placer
    from sar_agent.slurm.sinfo import FreeNodes

SHOWN_JOBS, SHOWN_LINKS = 10, 3
QUEUE = "JobID:|,State:|,NodeList:|,SchedNodes:|,UserName:|,StartTime:|"
"""squeue's columns that hold the nodes of running jobs and those planned for pending ones."""


@with_host_options
def place(
    fabric: FabricOption,
    jobs: Annotated[
        str | None,
        typer.Option(
            "--jobs", callback=present, help="the queue, as for `route`; without it, squeue is run"
        ),
    ] = None,
    nodes: Annotated[
        Path | None,
        typer.Option(
            "--nodes",
            callback=present,
            help="which nodes are free: the output of sinfo -h -N -o '%N|%T|%P', of sinfo, or of "
            "sinfo --json; without it, sinfo is run",
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(
            "-N", metavar="NODES", min=1, max=4096, help="the job's nodes; without it, the queue"
        ),
    ] = None,
    lasts: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="TIME",
            help="how long the job runs (90m, 2h, 1d): nodes of pending jobs that start later may "
            "be used",
        ),
    ] = None,
    partition: Annotated[
        str | None, typer.Option("--partition", help="nodes of this partition alone")
    ] = None,
    routes: TodayOption = None,
    engine: AssumedOption = None,
    every: Annotated[bool, typer.Option("--all", help="print all jobs and links")] = False,
    as_json: JsonOption = False,
) -> None:
    """Propose free nodes for a job, or say which jobs are spread out and what pending ones share.

    With -N, the choice of Slurm's tree rule and up to three better ones, with what each costs the
    job and others. Without it, running jobs that are on more leaf switches than needed, and the
    links that pending jobs will share. Changes nothing in Slurm.
    """
    from sar_agent.reports.placement import Placer
    from sar_agent.slurm.sinfo import free_nodes

    seconds = seconds_of(lasts, "--time") if lasts else float("inf")
    found = free_nodes(nodes, partition)
    if found.left_out:
        these = plural(len(found.left_out), "line of sinfo is", "lines of sinfo are")
        note(f"note: {these} passed over: {found.left_out[0]}")
    with TemporaryDirectory() as folder:
        queue = jobs or _queue(Path(folder) / "squeue")
        dumps, planned = read_dumps(fabric, queue, routes, engine), _planned(queue)
    usable = _usable(found, planned, seconds) if count else found.free
    running = {host for record in dumps.records for host in record.hosts}
    placer = Placer(dumps, usable - running)
    _compare_nodes(found, placer, running)
    if count:
        _propose(placer, count, as_json)
    else:
        from sar_agent.reports.spread import planned_jobs, spread_jobs, spread_json

        spread = spread_jobs(dumps.fabric, dumps.records, usable - running)
        later = planned_jobs(dumps.traffic, planned)
        if as_json:
            print_json(spread_json(spread, later))
        else:
            of = plural(len(dumps.records), "job")
            lines = [f"on more switches than needed: {len(spread)} of {of}"]
            lines += [f"  {job.words()}" for job in spread[: len(spread) if every else SHOWN_JOBS]]
            if len(spread) > SHOWN_JOBS and not every:
                lines.append(f"  and {len(spread) - SHOWN_JOBS} more (--all)")
            lines.append(f"pending, with nodes planned for them: {len(later)}")
            lines += [f"  {job.words(len(job.shared) if every else SHOWN_LINKS)}" for job in later]
            typer.echo("\n".join(lines))


def _queue(to: Path) -> str:
    """What squeue says of running and pending jobs, as a file."""
    from sar_agent.errors import Unavailable
    from sar_agent.util.programs import ProgramFailed, run_program

    remedy = "run this where Slurm's commands work, or give a file as --jobs"
    command = ("squeue", "--all", "--local", "-O", QUEUE)
    try:
        to.write_text(run_program(command, deadline=30.0, most=64 * 2**20, remedy=remedy))
    except ProgramFailed as error:
        raise Unavailable(f"squeue does not reach Slurm from here; {remedy}") from error
    return str(to)


def _planned(jobs: str) -> tuple[JobRecord, ...]:
    from sar_agent.jobs.synthetic import FORMS
    from sar_agent.slurm.job_files import read_jobs_file

    return () if jobs.startswith(FORMS) else read_jobs_file(jobs, {"PENDING"})


def _usable(found: FreeNodes, planned: tuple[JobRecord, ...], seconds: float) -> frozenset[str]:
    """The free nodes without those that Slurm keeps for jobs that may start before this one ends;
    a node that is kept for an unknown job is not used."""
    end = time.time() + seconds
    starts: dict[str, float] = {}
    for record in planned:
        for host in record.hosts:
            starts[host] = min(record.start or 0.0, starts.get(host, float("inf")))
    kept = {host for host, start in starts.items() if start < end}
    kept |= found.planned - starts.keys()
    if left := len(found.free & kept):
        these = plural(left, "free node is", "free nodes are")
        note(f"note: {these} kept for pending jobs and left out")
    return found.free - kept


def _compare_nodes(found: FreeNodes, placer: Placer, running: set[str]) -> None:
    """Notes on nodes that sinfo and the fabric, or sinfo and the queue, do not agree on. Raises
    `InputError` where they have nothing in common."""
    from sar_agent.errors import InputError

    unknown = sorted(host for host in found.nodes if host not in placer.fabric.hosts)
    if len(unknown) == len(found.nodes):
        raise InputError(
            f"no node of sinfo ({', '.join(unknown[:3])}, …) is a host of {placer.fabric.name}",
            remedy="give files of one cluster, with the same host names",
        )
    if unknown:
        these = plural(len(unknown), "node is", "nodes are")
        note(f"note: {these} not in the fabric: {', '.join(unknown[:5])}")
    if other := sorted(found.free & placer.fabric.hosts.keys() - placer.compute):
        note(
            f"note: {plural(len(other), 'free node is', 'free nodes are')} no compute hosts of "
            "the fabric, or have a link "
            f"that is down, and are left out: {', '.join(other[:5])}"
        )
    if busy := found.free & running:
        note(
            f"note: {plural(len(busy), 'node is', 'nodes are')} free in sinfo but run jobs in "
            "the queue, such as "
            f"{min(busy)}; they are left out"
        )


def _propose(placer: Placer, count: int, as_json: bool) -> None:
    from sar_agent.errors import InputError

    try:
        found = placer.candidates(count)
    except ValueError as error:
        raise InputError(
            f"{plural(count, 'node is', 'nodes are')} asked for, and {placer.count} are free in "
            "the fabric",
            remedy="ask for fewer, or look at the nodes that sinfo lists",
        ) from error
    if as_json:
        print_json({"free": placer.count, "candidates": [each.json() for each in found]})
        return
    typer.echo(f"{plural(count, 'node')} of {placer.count} free ones:")
    for number, each in enumerate(found):
        typer.echo(f"{number or '-'} {each.words()}")
    if len(found) == 1:
        typer.echo("nothing better was found")
