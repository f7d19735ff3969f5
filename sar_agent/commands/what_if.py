"""`what-if`: what a failure, a maintenance or one switch more would bring; nothing is installed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from sar_agent.commands.announce import progress
from sar_agent.commands.dump_inputs import OptionalJobs, TodayOption, read_dumps
from sar_agent.commands.host_options import with_host_options
from sar_agent.commands.inputs import (
    FabricOption,
    JsonOption,
    print_answer,
    print_json,
)

if TYPE_CHECKING:
    from sar_agent.reports.site_dumps import SiteDumps
    from sar_agent.reports.what_if import WhatIf
    from sar_agent.routing.engine import Engine

SHOWN_FAILURES = 10


@with_host_options
def what_if(
    fabric: FabricOption,
    jobs: OptionalJobs = None,
    routes: TodayOption = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="routing engine that makes the tables afterwards; without it the one that made "
            "those of --routes, or that OpenSM would make"
        ),
    ] = None,
    down: Annotated[
        list[str] | None,
        typer.Option(
            "--down",
            metavar="PLACE",
            help="what is pulled: a switch, a port (SPINE[3]), a host, or a pattern of names "
            "(rack12-*); may be repeated",
        ),
    ] = None,
    add: Annotated[
        str | None,
        typer.Option("--add", metavar="SWITCH", help="one more switch, cabled like this one"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say what jobs lose if switches or cables are pulled, or gain from one switch more.

    Without --down and --add, all single failures are ranked by an estimate; the worst 50, and more
    on smaller fabrics, are routed and proved.
    """
    from sar_agent.errors import InputError
    from sar_agent.reports.made_by import maker_of, of_engine
    from sar_agent.routing import load_engine

    if down and add:
        raise InputError("--down and --add are two questions", remedy="ask one after the other")
    given = read_dumps(fabric, jobs, routes, engine)
    chosen = load_engine(engine or given.assumed or maker_of(given))
    dumps, differ = of_engine(given, chosen) if routes else (given, "")
    if down or add:
        found = _pulled(dumps, chosen, down) if down else _added(dumps, chosen, add or "")
        found = replace(found, notes=(*filter(None, [differ]), *found.notes))
        print_answer(found.json(), found.words(), as_json=as_json)
    else:
        _ranked(dumps, chosen, differ, as_json)


def _pulled(dumps: SiteDumps, engine: Engine, down: list[str]) -> WhatIf:
    from sar_agent.reports.places import find_places
    from sar_agent.reports.what_if import pulled

    return pulled(dumps, engine, find_places(dumps.fabric, down))


def _added(dumps: SiteDumps, engine: Engine, like: str) -> WhatIf:
    from sar_agent.errors import InputError
    from sar_agent.fabric.one_more import with_one_more
    from sar_agent.reports.places import find_places
    from sar_agent.reports.what_if import what_if as changed

    places = find_places(dumps.fabric, [like])
    if len(places.switches) != 1 or places.channels or places.terminals:
        raise InputError(f"--add {like} is not one switch", remedy="name a switch")
    if dumps.fabric.terminals_at[places.switches[0]]:
        raise InputError(
            f"--add {like} is a switch with hosts: one more like it would have none, and what "
            "it would change is chance",
            remedy="name a switch without hosts",
        )
    more = with_one_more(dumps.fabric, places.switches[0])
    full = tuple(f'"{name}" has no free port in the dump' for name in more.full)
    name = f'one more switch, cabled like "{dumps.fabric.switch_name[places.switches[0]]}"'
    return changed(dumps, engine, more.fabric, (name,), notes=full)


def _ranked(dumps: SiteDumps, engine: Engine, differ: str, as_json: bool) -> None:
    """Prints all single failures by what is lost; `differ`: `of_engine`'s sentence."""
    from sar_agent.reports.screening import ranked_failures, worst_failures
    from sar_agent.reports.what_if import pulled

    ranked = ranked_failures(dumps)
    worst, routed = worst_failures(ranked, dumps.fabric), list["WhatIf"]()
    for i, each in enumerate(worst):
        if i % 50 == 0:
            progress(f"failures routed: {i} of {len(worst)}")
        routed.append(pulled(dumps, engine, each.places))
    routed.sort(key=lambda each: each.harm, reverse=True)
    if as_json:
        worst_first = [each.json() for each in routed]
        notes = [differ] if differ else []
        print_json({"failures": len(ranked), "worst": worst_first, "notes": notes})
        return
    typer.echo(f"{len(ranked)} single failures, {len(routed)} of them routed")
    for head, some in (
        ("hosts of jobs are lost with", [each for each in routed if each.harm[0]]),
        ("all hosts of jobs stay without", [each for each in routed if not each.harm[0]]),
    ):
        if some:
            typer.echo("\n  ".join([f"{head}:", *(each.line() for each in some[:SHOWN_FAILURES])]))
    unproved = sum(not each.proved for each in routed)
    typer.echo(f"{unproved} of {len(routed)} without proved routes" if unproved else "all proved")
    if differ:
        typer.echo(f"note: {differ}")
