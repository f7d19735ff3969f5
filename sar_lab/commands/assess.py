"""`sar-agent assess`: what a cluster would gain, estimated from its own dumps."""

from __future__ import annotations

import shlex
import sys
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from sar_agent.commands.announce import announce_compiling, progress
from sar_agent.commands.host_options import with_host_options
from sar_agent.commands.inputs import JsonOption, present, print_json
from sar_agent.util.plural import plural
from sar_lab.commands.history_options import FromOption, UntilOption


@with_host_options
def assess(
    fabric: Annotated[
        str | None,
        typer.Option(
            "--fabric",
            callback=present,
            help="the fabric, as for `route`; or Leonardo's list of nodes and switches, with "
            "substitute cables. Not needed for the agent's own records",
        ),
    ] = None,
    jobs: Annotated[
        str | None,
        typer.Option(
            "--jobs",
            callback=present,
            help="the running jobs: output of squeue (JSON or pipe-separated), a job-to-terminal "
            "map, or synthetic jobs, as for `route` (mix:1, mix:1,placed=tree, blocks:30,7,50)",
        ),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(
            "--history",
            callback=present,
            help="job history: output of sacct (-P or JSON), a CSV file job,start,end,nodelist, or "
            "a folder or tar file of JOBID.txt. Or the agent's own records, its state_dir: what "
            "the days that it watched would have brought",
        ),
    ] = None,
    routes: Annotated[
        Path | None,
        typer.Option(
            "--routes",
            callback=present,
            help="the tables of today: opensm-lfts.dump, as for `measure`",
        ),
    ] = None,
    topology: Annotated[
        Path | None,
        typer.Option(
            "--topology-conf",
            callback=present,
            help="Slurm's topology.conf or topology.yaml",
        ),
    ] = None,
    counters: Annotated[
        list[str] | None,
        typer.Option(
            "--counters",
            callback=present,
            help="what links really carry: two dumps of perfquery or ibdiagnet2 (give it twice, "
            "the earlier one first), one ibdiagnet2.db_csv with PM_DELTA, or a Prometheus server "
            "(http://host:9090?time=2026-11-20T08:00; twice for the time between)",
        ),
    ] = None,
    counter_seconds: Annotated[
        float | None,
        typer.Option(
            "--counter-seconds",
            min=0.1,
            help="time between the two dumps, if their files were copied since; of one db_csv, "
            "between its two readings",
        ),
    ] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(
            "--engine", help="compare these engines instead of the usual six; may be repeated"
        ),
    ] = None,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="this network uses adaptive routing today")
    ] = False,
    begin: FromOption = None,
    until: UntilOption = None,
    samples: Annotated[
        int, typer.Option("--samples", min=1, help="number of moments of the history to assess")
    ] = 48,
    simulate: Annotated[
        bool | None,
        typer.Option(
            "--simulate/--no-simulate",
            help="simulate the traffic of the jobs before and after until it is done, or not at "
            "all; without either, for at most 45 s",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", file_okay=False, help="folder for the report")
    ] = Path("out/assess"),
    as_json: JsonOption = False,
) -> None:
    """Estimate what a cluster would gain; writes an HTML report and installs nothing.

    Exit code 1 if no answer is possible, because no job runs on this network.
    """
    from sar_agent.commands.cabling import ignored
    from sar_agent.errors import InputError
    from sar_agent.routing import load_engine
    from sar_lab.assess import assess as run
    from sar_lab.assess.agent_record import record_path
    from sar_lab.assess.assess_page import write_assessment
    from sar_lab.assess.assessment import SIMULATE_FOR, Assessment
    from sar_lab.assess.compile_ahead import compile_ahead
    from sar_lab.assess.counted_links import read_window_of
    from sar_lab.assess.rate import ENGINES
    from sar_lab.assess.site_data import read_site_data
    from sar_lab.assess.tiles import rings_of
    from sar_lab.mixes.replay_inputs import fabric_of

    command = shlex.join(["sar-agent", *sys.argv[1:]])
    if history and (record := record_path(history)):
        if begin or until:
            raise InputError(
                "--from and --until are for job histories; the agent's records are read whole",
                remedy="leave them out",
            )
        _assess_record(record, command, out, as_json=as_json)
        return
    if fabric is None:
        raise InputError("no fabric was given", remedy="give --fabric FILE")
    announce_compiling()
    compile_ahead()
    names = tuple(engine or ENGINES)
    for name in names:
        load_engine(name)  # reports an unknown name before the long computation
    readings = read_window_of(counters, counter_seconds) if counters else None
    network, remarks = fabric_of(fabric)
    given = read_site_data(network, jobs, history, routes, topology, remarks, (begin, until))

    def show_draft(found: Assessment) -> None:
        page = write_assessment(found, out)
        progress(f"a first page, with upper bounds: {page.resolve()}")

    found = run(
        given,
        command=command,
        engines=names,
        adaptive=adaptive,
        samples=samples,
        simulate_for={None: SIMULATE_FOR, True: inf, False: 0.0}[simulate],
        counters=readings,
        ignored=ignored(given.fabric),
        say=progress,
        draft=show_draft,
    )
    page = write_assessment(found, out)
    nothing_known = found.judgement.kind == "unknown"
    if as_json:
        print_json({**found.json(), "page": str(page)})
        raise typer.Exit(int(nothing_known))
    if found.repair:
        typer.echo(found.repair)
    typer.echo(found.judgement.sentence)
    typer.echo(found.judgement.why)
    if rings := rings_of(found):
        typer.echo(rings)
    for name, change in (
        ("all messages at once", found.judgement.at_once),
        ("one message at a time", found.judgement.one_at_a_time),
    ):
        if change:
            typer.echo(
                f"{name}: {change.before:.2f} → {change.after:.2f} times as long as on an empty "
                "network"
                + (f", mean of {plural(len(found.course.times), 'moment')}" if found.course else "")
            )
    if nothing_known:
        raise typer.Exit(1)
    if found.ratings.assumed:
        typer.echo(
            f"before: {found.ratings.before.name}, as no tables were given (--routes); "
            f"{found.ratings.why}; "
            f"after: {found.ratings.after.name if found.ratings.after else 'none'}"
        )
    if found.counted is not None:
        from sar_agent.counters.compare import comparison_words

        typer.echo(comparison_words(found.counted.comparison))
    for left in given.left_out:
        typer.echo(f"left out: {left}")
    typer.echo(f"Open {page.resolve()}")


def _assess_record(record: Path, command: str, out: Path, *, as_json: bool) -> None:
    from sar_lab.assess.agent_record import summarise_record
    from sar_lab.assess.agent_record_page import write_record

    found = summarise_record(record)
    page = write_record(found, command, out)
    if as_json:
        print_json({**found.json(), "page": str(page)})
        return
    total = found.total
    typer.echo(found.sentence)
    for name, change in (
        ("all messages at once", total.at_once),
        ("one message at a time", total.one_at_a_time),
    ):
        typer.echo(
            f"{name}: {change.before:.2f} → {change.after:.2f} times as long as on an empty "
            f"network, mean of {plural(total.jobs, 'job')} on {plural(len(found.days), 'day')}"
        )
    typer.echo(
        f"tables {'changed' if found.live else 'would have changed'} "
        f"{plural(total.changes, 'time')}, "
        f"{plural(total.entries, 'entry', 'entries')} in all"
    )
    typer.echo(f"Open {page.resolve()}")
