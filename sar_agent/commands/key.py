"""`key plan | request | done | list`: routing keys, for sites and for applications."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sar_agent.commands.inputs import FabricOption, JsonOption, print_json

JobOption = Annotated[
    str | None, typer.Option("--job", help="Slurm's number; else that of this process's job")
]
AgentOption = Annotated[
    str | None,
    typer.Option(
        "--agent", help="where the agent listens: HOST:PORT or a path; else SAR_AGENT says it"
    ),
]
MOST_RANKS = 1 << 20
WaitOption = Annotated[float, typer.Option("--wait", min=0.1, help="seconds, at most")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    key = typer.Typer(
        name="key",
        help="Routing keys: routes of its own for a job that knows its traffic.",
        no_args_is_help=True,
    )
    app.add_typer(key)

    @key.command()
    def plan(
        fabric: FabricOption,
        lmc: Annotated[
            int | None, typer.Option("--lmc", min=0, help="is that one possible?")
        ] = None,
        as_json: JsonOption = False,
    ) -> None:
        """The largest LMC that the fabric's LIDs allow, and how many keys that gives."""
        from sar_agent.commands.inputs import read_fabric
        from sar_agent.fabric.lmc import lmc_plan

        found = lmc_plan(read_fabric(fabric), lmc)
        if as_json:
            print_json(found.json())
        found.require()
        if not as_json:
            typer.echo(found.words())

    @key.command()
    def request(
        phase: Annotated[str, typer.Option("--phase", help="your name for it")],
        job: JobOption = None,
        pattern: Annotated[
            str | None, typer.Option("--pattern", help="ring, stencil3d:4x4x4, …")
        ] = None,
        file: Annotated[
            Path | None,
            typer.Option(
                "--file", help="lines FROM TO of ranks; the part below [PHASE] if it has any"
            ),
        ] = None,
        tasks: Annotated[
            str | None, typer.Option("--tasks-per-node", help="2(x3),1; else Slurm's variable")
        ] = None,
        lease: Annotated[
            float | None, typer.Option("--lease", min=1, help="seconds, unless asked again")
        ] = None,
        wait: WaitOption = 10.0,
        agent: AgentOption = None,
        as_json: JsonOption = False,
    ) -> None:
        """Routes for a phase of a job: exit code 0 once they are in force, 1 where there are none
        and the job goes on with LID offset 0, 2 for a request that makes no sense."""
        from dataclasses import asdict

        from sar_agent.keys import client

        found = client.request(
            phase,
            pattern=pattern,
            pairs=_pairs(file, phase) if file else None,
            job=job,
            tasks=tasks,
            lease=lease,
            wait=wait,
            agent=agent,
        )
        if as_json:
            print_json(asdict(found) | {"in_force": found.in_force})
        elif found.in_force:
            typer.echo(
                f"phase {phase}: LID offset {found.offset}, at most {found.own} flows a link, "
                f"{found.total} with other keys'"
            )
        else:
            typer.echo(f"phase {phase}: LID offset 0; {found.sentence}", err=True)
        if not found.in_force:
            raise typer.Exit(1)

    @key.command()
    def done(
        phase: Annotated[
            str | None, typer.Option("--phase", help="else every phase of the job")
        ] = None,
        job: JobOption = None,
        wait: WaitOption = 2.0,
        agent: AgentOption = None,
        as_json: JsonOption = False,
    ) -> None:
        """A phase is over: its LID offset is free again."""
        from sar_agent.keys import client

        gone = client.done(phase, job=job, wait=wait, agent=agent)
        if as_json:
            print_json({"phases": gone})
        else:
            typer.echo(f"done: {', '.join(gone) or 'none was in force yet'}")

    @key.command("list")
    def list_keys(
        job: JobOption = None,
        wait: WaitOption = 2.0,
        agent: AgentOption = None,
        as_json: JsonOption = False,
    ) -> None:
        """The keys of a job that are in force."""
        from sar_agent.keys import client

        found = client.keys(job=job, wait=wait, agent=agent)
        if as_json:
            print_json({"keys": found})
        elif not found:
            typer.echo("no keys")
        for one in [] if as_json else found:
            typer.echo(
                f"{one['phase']}: LID offset {one['offset']}, at most {one['own']} flows a link, "
                f"{one['total']} with other keys'"
            )


def _pairs(file: Path, phase: str) -> list[tuple[int, int]]:
    """Of the phase of that name, or of the only one."""
    from sar_agent.errors import InputError
    from sar_agent.jobs.patterns import read_phases
    from sar_agent.util.text_files import read_text

    found = {one.name: one for one in read_phases(read_text(file), MOST_RANKS, file)}
    one = found.get(phase) or (next(iter(found.values())) if len(found) == 1 else None)
    if one is None:
        raise InputError(
            f"no phase {phase!r}", file=file, remedy=f"there are {', '.join(map(repr, found))}"
        )
    return list(zip(one.source.tolist(), one.destination.tolist(), strict=True))
