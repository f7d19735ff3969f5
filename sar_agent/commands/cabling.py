"""`cables`, `link`, `path`: what is wrong with cables, what a link carries, and the way between two
hosts; nothing is installed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from sar_agent.commands.announce import note
from sar_agent.commands.dump_inputs import (
    AssumedOption,
    CountersOption,
    OptionalJobs,
    TodayOption,
    read_dumps,
)
from sar_agent.commands.host_options import chosen_settings, with_host_options
from sar_agent.commands.inputs import (
    FabricOption,
    JsonOption,
    present,
    print_answer,
    read_fabric,
)

if TYPE_CHECKING:
    from sar_agent.fabric import Fabric
    from sar_agent.reports.places import Places

SHOWN_FINDINGS, SHOWN_LINKS = 20, 10


def ignored(fabric: Fabric, named: Sequence[str] = ()) -> Places:
    """The places of `--ignore`, and of `cables.ignore` of `--config`. Of the settings, what is not
    in the fabric is noted: it may have left. Raises `InputError` for what `named` has and the
    fabric lacks."""
    from sar_agent.errors import InputError
    from sar_agent.reports.places import PlaceNames, find_places

    found, names = find_places(fabric, named), PlaceNames(fabric)
    settings = chosen_settings()
    for text in settings.cables.ignore if settings else ():
        try:
            found += names(text)
        except InputError as error:
            note(f"note: cables.ignore: {error}")
    return found


@with_host_options
def cables(
    fabric: FabricOption,
    jobs: OptionalJobs = None,
    routes: TodayOption = None,
    engine: AssumedOption = None,
    counters: CountersOption = None,
    before: Annotated[
        str | None,
        typer.Option(
            "--before",
            callback=present,
            help="an earlier dump of the fabric: list what has changed since",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore",
            metavar="PLACE",
            help="leave out a switch, a port, a host, a host list or a pattern of names (ufm-*), "
            "beside those of cables.ignore; may be repeated",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="print all findings")] = False,
    as_json: JsonOption = False,
) -> None:
    """Report cables that are slow, missing or faulty, and the jobs that each of them hurts."""
    from sar_agent.fabric.cable_changes import cable_changes
    from sar_agent.reports.cables import cable_report

    dumps = read_dumps(fabric, jobs, routes, engine, counters)
    changes = cable_changes(read_fabric(before), dumps.fabric) if before else None
    report = cable_report(dumps, changes, ignored(dumps.fabric, ignore or ()))
    shown = len(report.findings) + len(changes or ()) if every else SHOWN_FINDINGS
    print_answer(report.json(), report.words(shown), as_json=as_json)


@with_host_options
def link(
    fabric: FabricOption,
    named: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LINK…]",
            help="a port (LEAF[21] or LEAF:21), a host, or a switch for all of its cables",
        ),
    ] = None,
    jobs: OptionalJobs = None,
    job: Annotated[
        str | None, typer.Option("--job", help="instead of LINK: the links of this job")
    ] = None,
    line: Annotated[
        bool, typer.Option("--line", help="with --job: one sentence for an epilog, no names")
    ] = False,
    routes: TodayOption = None,
    engine: AssumedOption = None,
    counters: CountersOption = None,
    every: Annotated[bool, typer.Option("--all", help="print all cables of a switch")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the jobs on a link, its predicted load, what it carried, and its errors."""
    from sar_agent.errors import InputError
    from sar_agent.jobs.find_job import require_job
    from sar_agent.reports.link import line_of_job, links, links_of_job
    from sar_agent.reports.places import Places, find_places
    from sar_agent.slurm.job_files import read_jobs_file
    from sar_agent.slurm.states import STATES

    if bool(named) == bool(job) or (job and not jobs):
        raise InputError("name links, or a job of --jobs", remedy="give LINK or --job with --jobs")
    dumps = read_dumps(fabric, jobs, routes, engine, counters)
    if job and jobs:
        queue = partial(read_jobs_file, jobs, STATES, hostless=True)
        job = require_job(dumps.records, job, queue).id
    if job and (line or not links_of_job(dumps, job)):
        print_answer({"line": (said := line_of_job(dumps, job))}, said, as_json=as_json)
        return
    places = find_places(dumps.fabric, named or []).cables_of(dumps.fabric)
    found = links(dumps, Places(channels=tuple(links_of_job(dumps, job))) if job else places)
    found = tuple(sorted(found, key=lambda each: -max(way.load or 0 for way in each.directions)))
    lines = [each.words() for each in (found if every else found[:SHOWN_LINKS])]
    if len(found) > len(lines):
        lines.append(f"and {len(found) - len(lines)} more cables (--all)")
    answer = {"links": [each.json() for each in found], "assumed": dumps.assumed}
    print_answer(answer, "\n".join(lines), as_json=as_json)


@with_host_options
def path(
    fabric: FabricOption,
    begin: Annotated[str, typer.Argument(metavar="A", help="a host")],
    end: Annotated[str, typer.Argument(metavar="B", help="another host")],
    jobs: OptionalJobs = None,
    job: Annotated[
        str | None,
        typer.Option("--job", help="a job of --jobs on both hosts: list whom it meets"),
    ] = None,
    routes: TodayOption = None,
    engine: AssumedOption = None,
    counters: CountersOption = None,
    every: Annotated[bool, typer.Option("--all", help="print all pairs of ports")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the way between two hosts, there and back: load, errors, waits, jobs of each cable."""
    from sar_agent.errors import InputError
    from sar_agent.reports.path import path_report

    if job and not jobs:
        raise InputError("--job is a job of --jobs", remedy="give --jobs, too")
    dumps = read_dumps(fabric, jobs, routes, engine, counters)
    report = path_report(dumps, begin, end, job)
    print_answer(report.json(), report.words(every), as_json=as_json)
