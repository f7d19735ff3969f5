"""`sar-agent key`: routing keys; `plan` is for sites, the other commands are for applications."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sar_agent.commands.host_options import with_host_options
from sar_agent.commands.inputs import FabricOption, JsonOption, print_answer, print_json
from sar_agent.commands.program import Program
from sar_agent.util.plural import plural

MOST_RANKS = 1 << 20
JobOption = Annotated[
    str | None,
    typer.Option("--job", help="Slurm's job number; without it, the job of this process"),
]
AgentOption = Annotated[
    str | None,
    typer.Option(
        "--agent",
        help="where the agent listens: HOST:PORT or the path of its socket; without it, the value "
        "of SAR_AGENT",
    ),
]
WaitOption = Annotated[
    float,
    typer.Option(
        "--wait", min=0.1, metavar="SECONDS", help="seconds to wait for the answer, at most"
    ),
]

app = Program(name="key", help="Routing keys: separate routes for a job that declares its traffic.")


@app.command()
@with_host_options
def plan(
    fabric: FabricOption,
    lmc: Annotated[
        int | None, typer.Option("--lmc", min=0, help="check whether this LMC is possible")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the largest LMC that the fabric's LIDs allow, and how many routing keys it provides."""
    from sar_agent.commands.inputs import read_fabric
    from sar_agent.fabric.lmc import lmc_plan

    found = lmc_plan(read_fabric(fabric), lmc)
    if as_json:
        print_json(found.json())
    found.require()
    if not as_json:
        typer.echo(found.words())


@app.command()
def request(
    phase: Annotated[str, typer.Option("--phase", help="your name for this phase of the program")],
    job: JobOption = None,
    pattern: Annotated[
        str | None, typer.Option("--pattern", help="traffic pattern: ring, stencil3d:4x4x4, …")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            help="file with the pairs of ranks, a line FROM TO each; in a file with [PHASE] "
            "headings, only the lines below the heading of this phase",
        ),
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(
            "--tasks-per-node",
            help="tasks on each node, such as 2(x3),1; without it, Slurm's variable",
        ),
    ] = None,
    lease: Annotated[
        float | None,
        typer.Option(
            "--lease",
            min=1,
            metavar="SECONDS",
            help="seconds until the key ends, unless requested again",
        ),
    ] = None,
    wait: WaitOption = 10.0,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Request routes for one phase of a job.

    Exit code 0 once they are in force; 1 if they are not available and the job continues on LID
    offset 0; 2 if the request is invalid.
    """
    from dataclasses import asdict

    from sar_agent.services.keys import client

    answer = client.request(
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
        print_json(asdict(answer) | {"in_force": answer.in_force})
    elif answer.in_force:
        typer.echo(f"phase {phase}: {_flows(answer.offset, answer.own, answer.total)}")
    else:
        typer.echo(f"phase {phase}: LID offset 0; {answer.sentence}", err=True)
    if not answer.in_force:
        raise typer.Exit(1)


@app.command()
def done(
    phase: Annotated[
        str | None, typer.Option("--phase", help="the phase; without it, every phase of the job")
    ] = None,
    job: JobOption = None,
    wait: WaitOption = 2.0,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report that a phase has ended, so that its LID offset becomes free."""
    from sar_agent.services.keys import client

    phases = client.done(phase, job=job, wait=wait, agent=agent)
    words = f"done: {', '.join(phases) or 'no key was in force yet'}"
    print_answer({"phases": phases}, words, as_json=as_json)


@app.command("list")
def list_keys(
    job: JobOption = None,
    wait: WaitOption = 2.0,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the routing keys of a job that are in force."""
    from sar_agent.services.keys import client

    keys = client.keys(job=job, wait=wait, agent=agent)
    lines = [f"{k['phase']}: {_flows(k['offset'], k['own'], k['total'])}" for k in keys]
    print_answer({"keys": keys}, "\n".join(lines) or "no keys", as_json=as_json)


def _flows(offset: Any, own: Any, total: Any) -> str:
    flows = plural(own, "flow")
    return f"LID offset {offset}, at most {flows} per link, {total} with those of other keys"


def _pairs(file: Path, phase: str) -> list[tuple[int, int]]:
    """The pairs of ranks of the phase with that name, or of the only phase in the file."""
    from sar_agent.demand.patterns import read_phases
    from sar_agent.errors import InputError
    from sar_agent.util.text_files import read_text

    phases = {each.name: each for each in read_phases(read_text(file), MOST_RANKS, file)}
    pairs = phases.get(phase) or (next(iter(phases.values())) if len(phases) == 1 else None)
    if pairs is None:
        raise InputError(
            f"no phase {phase!r}", file=file, remedy=f"it has {', '.join(map(repr, phases))}"
        )
    return list(zip(pairs.source.tolist(), pairs.destination.tolist(), strict=True))
