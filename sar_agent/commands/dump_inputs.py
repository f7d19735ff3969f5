"""Options of commands that report on a site from its dumps, and the dumps themselves."""

from __future__ import annotations

import filecmp
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sar_agent.commands.announce import note
from sar_agent.commands.inputs import JobsOption, present, read_fabric, read_jobs, read_routes
from sar_agent.util.plural import plural

if TYPE_CHECKING:
    from sar_agent.reports.site_dumps import SiteDumps

OptionalJobs = Annotated[str | None, JobsOption.__metadata__[0]]
TodayOption = Annotated[
    Path | None,
    typer.Option(
        "--routes",
        callback=present,
        help="the tables in force: opensm-lfts.dump, as for `measure`",
    ),
]
AssumedOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="without --routes: the engine whose routes are assumed; by default those that OpenSM "
        "would make: opensm-ftree where OpenSM's ftree serves the fabric, else minhop",
    ),
]
CountersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--counters",
        callback=present,
        help="what ports counted: a dump of perfquery or ibdiagnet2, ibdiagnet2.db_csv, or a "
        "Prometheus server (http://host:9090, of an earlier time with ?time=2026-11-20T08:00); "
        "give it twice, the earlier one first, for what was added and carried between them",
    ),
]


def read_dumps(
    fabric: str,
    jobs: str | None,
    routes: Path | None,
    engine: str | None,
    counters: Sequence[str] | None = None,
) -> SiteDumps:
    """The dumps of a site. Raises `InputError` for a file that cannot be used."""
    from sar_agent.jobs import JobMix
    from sar_agent.reports.site_dumps import SiteDumps
    from sar_agent.routing import Options, load_engine
    from sar_agent.routing.before import assumed_engine
    from sar_agent.routing.lanes import routed

    if engine:
        load_engine(engine)  # reports an unknown name before the files are read
    network = read_fabric(fabric)
    records, mix = read_jobs(jobs, network) if jobs else ((), JobMix.of([]))
    if routes:
        tables, assumed = read_routes(routes, network), ""
    else:
        assumed, why = (engine, "") if engine else assumed_engine(network)
        tables = routed(load_engine(assumed), network, mix, Options())
        if mix.jobs:
            note_assumed(assumed, why)
    dumps = SiteDumps(network, records, mix, tables, assumed)
    return _with_counters(dumps, counters) if counters else dumps


def _with_counters(dumps: SiteDumps, sources: Sequence[str]) -> SiteDumps:
    from sar_agent.counters import WindowLeftOut, align
    from sar_agent.counters.port_errors import added, read_port_errors
    from sar_agent.counters.prometheus_errors import prometheus_errors, prometheus_time
    from sar_agent.counters.sources import window_of
    from sar_agent.errors import InputError
    from sar_agent.reports.wording import moment

    if len(sources) > 2:
        raise InputError(
            f"--counters is given {len(sources)} times", remedy="give it once or twice"
        )
    if len(sources) == 2 and _same_dump(*sources):
        raise InputError(
            f"{sources[0]} and {sources[1]} are the same dump: nothing was counted between them",
            remedy="give an earlier and a later one, or one alone",
        )
    places = [prometheus_time(text) for text in sources]
    errors = [
        (prometheus_errors(place, dumps.fabric) if place else read_port_errors(text)).of(
            dumps.fabric
        )
        for place, text in zip(places, sources, strict=True)
    ]
    counted = added(*errors) if len(errors) == 2 else errors[0]
    dumps = replace(dumps, errors=counted)
    starts = [record.start for record in dumps.records if record.start]
    if later := sum(start > counted.time for start in starts):
        note(
            f"note: {counted.source} is of {moment(counted.time)}, before {later} of "
            f"{plural(len(starts), 'job')} started: what it counts is of other jobs"
        )
    try:
        if readings := window_of(sources):
            dumps = replace(dumps, window=align(dumps.fabric, readings))
    except (WindowLeftOut, InputError) as why:  # errors were counted, if nothing else
        note(f"note: {why}")
    return dumps


def _same_dump(first: str, second: str) -> bool:
    """Whether two sources are one file, copied or not, or one time of a server."""
    if first == second:
        return True
    try:
        return filecmp.cmp(first, second, shallow=False)
    except OSError:  # a server, or no file: reading it says so
        return False


def note_assumed(engine: str, why: str) -> None:
    """Says on stderr whose tables are assumed, as none were given."""
    reason = f" ({why})" if why else ""
    note(f"note: no tables were given (--routes); those of {engine} are assumed{reason}")
