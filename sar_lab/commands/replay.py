"""`sar-lab replay`: the routes that engines compute for every moment of a job history."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sar_agent.commands.announce import progress
from sar_agent.commands.engine_options import engine_option
from sar_agent.commands.host_options import with_host_options
from sar_agent.commands.inputs import FabricOption, JsonOption, print_json
from sar_agent.commands.times import seconds_of
from sar_agent.config.engine import Objective
from sar_lab.commands.history_options import FromOption, UntilOption

if TYPE_CHECKING:
    from sar_lab.replay.replay_run import Progress

ENGINES = ["updn", "ftree", "dfsssp", "sar"]
"""The engines of Table 1 of the SAR paper."""


@with_host_options
def replay(
    fabric: FabricOption,
    history: Annotated[
        str,
        typer.Option(
            "--history",
            help="job history, in the formats of `assess`, or a synthetic one such as "
            "synthetic:taurus,seed=1,days=30",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            file_okay=False,
            help="folder for the results; an interrupted replay in it is resumed",
        ),
    ],
    engine: Annotated[
        list[str] | None,
        typer.Option(
            "--engine",
            help="routing engine, may be repeated (default: updn, ftree, dfsssp and sar)",
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            "--every",
            metavar="TIME",
            help="time between samples (30m, 1h); without it, every change of jobs",
        ),
    ] = None,
    begin: FromOption = None,
    until: UntilOption = None,
    objective: Annotated[Objective, engine_option("objective")] = "load",
    chunk: Annotated[
        int,
        typer.Option(
            "--chunk", min=1, help="number of samples after which engines start from scratch"
        ),
    ] = 64,
    from_scratch: Annotated[
        bool,
        typer.Option(
            "--from-scratch", help="every sample from scratch: no engine starts from earlier routes"
        ),
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="number of processes (default: one per core)"),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            "--dask",
            help="compute with Dask: tcp://host:port, or slurm:N for N jobs of dask-jobqueue",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compute routes for every moment of a job history, and record the metrics over time.

    With the default engines this is Table 1 of the SAR paper.
    """
    from contextlib import ExitStack

    from sar_agent.errors import InputError
    from sar_agent.routing import load_engine
    from sar_lab.history.window import moment_of
    from sar_lab.mixes.replay_inputs import fabric_of, history_of

    try:
        import pyarrow  # noqa: F401

        from sar_lab.replay.pools import dask_client, pool_for
        from sar_lab.replay.replay_plan import ReplayPlan
        from sar_lab.replay.replay_run import run_replay
        from sar_lab.replay.replay_table import print_replay
        from sar_lab.replay.samples import samples_of
    except ImportError as error:
        raise InputError(
            f"a replay needs {error.name}", remedy="pip install 'sar-lab[replay]'"
        ) from error

    chosen = tuple(dict.fromkeys(engine or ENGINES))
    for name in chosen:
        load_engine(name)
    network, remarks = fabric_of(fabric)
    jobs = history_of(history)
    jobs = replace(jobs, remarks=(*jobs.remarks, *remarks))
    step = None if every is None else seconds_of(every, "--every")
    first = None if begin is None else moment_of(begin, "--from", jobs)
    last = None if until is None else moment_of(until, "--until", jobs)
    samples = samples_of(network, jobs, step, first, last)
    work = ReplayPlan(network, samples, chosen, objective, chunk, from_scratch)
    command = _command(
        chosen,
        {
            "--fabric": fabric,
            "--history": history,
            "--every": every,
            "--from": _anywhere(begin, first, jobs.unix),
            "--until": _anywhere(until, last, jobs.unix),
            "--objective": objective if objective != "load" else None,
            "--chunk": chunk if chunk != 64 else None,
            "--from-scratch": "" if from_scratch else None,
        },
    )
    with ExitStack() as stack:
        client = stack.enter_context(dask_client(dask)) if dask else None
        bar = stack.enter_context(_bar(quiet=as_json))
        pool = pool_for(workers, client)
        found = run_replay(jobs, work, out, pool, command, bar)
    if as_json:
        print_json({**found, "out": str(out)})
        return
    print_replay(found)
    typer.echo(f"written to {out}/replay.parquet, replay.json")


def _command(engines: Sequence[str], options: Mapping[str, object]) -> str:
    """The command that gives the same result on any machine and with any number of workers."""
    words = ["sar-lab", "replay"]
    for option, value in options.items():
        if value is not None:
            words += [option, str(value)] if value != "" else [option]
    for engine in engines:
        words += ["--engine", engine]
    return shlex.join(words)


def _anywhere(text: str | None, at: float | None, unix: bool) -> str | None:
    """A date that means the same moment in every time zone."""
    return datetime.fromtimestamp(at, UTC).isoformat() if unix and at is not None else text


@contextmanager
def _bar(quiet: bool) -> Iterator[Progress]:
    """A progress bar with the time left, or lines where stderr is no terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("replay"), BarColumn(), MofNCompleteColumn(), TextColumn("chunks,"),
        TimeElapsedColumn(), TextColumn("elapsed,"), TimeRemainingColumn(), TextColumn("left"),
    )  # fmt: skip
    if not (quiet or console.is_terminal):
        yield _lines()
        return
    with Progress(*columns, console=console, disable=quiet) as bar:
        task = bar.add_task("replay", total=None)
        yield lambda done, all: bar.update(task, completed=done, total=all)


def _lines() -> Callable[[int, int], None]:
    """A line for every tenth of the chunks."""
    tenth = 0

    def line(done: int, all: int) -> None:
        nonlocal tenth
        if (now := 10 * done // max(all, 1)) > tenth:
            tenth = now
            progress(f"replay: {done} of {all} chunks")

    return line
