"""`sar-lab hours`: when jobs are spread out, and at which hour a failure costs least."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sar_agent.commands.announce import note
from sar_agent.commands.dump_inputs import AssumedOption, TodayOption, note_assumed
from sar_agent.commands.host_options import with_host_options
from sar_agent.commands.inputs import FabricOption, JsonOption, print_json, read_fabric, read_routes
from sar_agent.util.plural import plural
from sar_lab.commands.history_options import FromOption, UntilOption


@with_host_options
def hours(
    fabric: FabricOption,
    history: Annotated[
        Path, typer.Option("--history", help="ended jobs: sacct, or job,start,end,nodelist")
    ],
    down: Annotated[
        list[str] | None,
        typer.Option("--down", metavar="PLACE", help="what is pulled, as for `what-if`"),
    ] = None,
    routes: TodayOption = None,
    engine: AssumedOption = None,
    begin: FromOption = None,
    until: UntilOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show by the hour how spread out jobs were, and what a failure or a maintenance would cost."""
    from sar_agent.errors import InputError
    from sar_agent.jobs import JobMix
    from sar_agent.reports.places import find_places
    from sar_agent.routing import Options, load_engine
    from sar_agent.routing.before import assumed_engine
    from sar_lab.history import place_history, read_history
    from sar_lab.history.by_hour import by_hour, hours_json
    from sar_lab.history.window import clock_words, within

    network = read_fabric(fabric)
    pulled = find_places(network, down) if down else None
    placed = place_history(within(read_history(history), begin, until), network)
    if not any(host in network.hosts for host in placed.history.hosts):
        raise InputError(
            f"no host of {history} is in {network.name}",
            remedy="give files of one cluster, with the same host names",
        )
    for each in (*placed.history.left_out, *placed.left_out):
        note(f"note: {each}")
    if routes:
        tables = read_routes(routes, network)
    else:
        assumed, why = (engine, "") if engine else assumed_engine(network)
        tables = load_engine(assumed).route(network, JobMix(()), Options())
        if down:
            note_assumed(assumed, why)
    found = by_hour(placed, tables, pulled)
    clock = clock_words(placed.history)
    note(f"note: hours are those of {clock}")
    if as_json:
        print_json({"hours": hours_json(found), "clock": clock})
        return
    head = ["hour", "days", "jobs", "spread out", "switches too many"]
    head += ["nodes lost", "jobs hit"] if pulled else []
    rows = [head, *(each.cells(pulled is not None) for each in found)]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo("  ".join(f"{cell:>{w}}" for cell, w in zip(row, wide, strict=True)))
    if pulled:
        least = min(found, key=lambda each: (each.lost_nodes, each.hit, each.jobs, each.hour))
        typer.echo(
            f"least is lost at {least.hour:02d}: {_mean(least.lost_nodes, 'node')} of jobs, "
            f"{_mean(least.hit, 'job')} with routes over it"
        )


def _mean(value: float, one: str) -> str:
    """`1 job`, `1.5 jobs`."""
    return plural(f"{value:.1f}".removesuffix(".0"), one)
