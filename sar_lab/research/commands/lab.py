"""`sar-lab lab`: the tables and figures of the papers, computed again, and studies of peers."""

from __future__ import annotations

import time
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import Annotated

import typer

from sar_agent.commands.inputs import JsonOption, print_json

app = typer.Typer(
    name="lab", help="Reproduce the tables and figures of the papers.", no_args_is_help=True
)


@app.command("list")
def list_experiments(as_json: JsonOption = False) -> None:
    """List the experiments: name, class and place in the paper; --json has what is published."""
    from sar_lab.research.papers.registry import (
        CLASSES,
        experiments,
        outside_rows,
        peer_studies,
    )

    if as_json:
        kinds = {
            "experiments": experiments(),
            "peers": peer_studies(),
            "others": outside_rows(),
        }
        print_json(
            {
                kind: [
                    {"name": e.name, "where": e.where, "class": e.kind, "published": e.published}
                    for e in some.values()
                ]
                for kind, some in kinds.items()
            }
        )
        return
    known = [*experiments().values(), *peer_studies().values(), *outside_rows().values()]
    width = max(len(e.name) for e in known)
    lines = [f"{e.name:{width}}  {e.kind}  {e.where}" for e in known]
    lines += [f"{letter}: {meaning}" for letter, meaning in CLASSES.items()]
    for line in lines:
        typer.echo(fill(line, get_terminal_size().columns, subsequent_indent=" " * (width + 5)))


@app.command()
def run(
    names: Annotated[
        list[str],
        typer.Argument(
            help="names of experiments (see `sar-lab lab list`), or all: every one in the list but "
            "those of other packages; class P from its record"
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", help="folder for the page, its pictures and its numbers")
    ] = Path("out/lab"),
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", min=1, help="number of seeds; more give a more certain result"),
    ] = None,
    first: Annotated[int, typer.Option("--seed", min=0, help="the first seed")] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="use at most 2 seeds: a look at each row")
    ] = False,
    rerun: Annotated[
        bool, typer.Option("--rerun", help="with all: also repeat experiments that have a result")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="compare every claim with the stored result; exit code 1 if one differs. With "
            "--judge, draws that other code made are measured again, but for class P",
        ),
    ] = False,
    judge: Annotated[
        bool,
        typer.Option(
            "--judge",
            help="judge and draw kept raw draws again, those of OUT or else of the repository; "
            "measure what they lack",
        ),
    ] = False,
    processes: Annotated[
        int, typer.Option("--processes", min=1, max=64, help="rows that run at the same time")
    ] = 1,
    as_json: JsonOption = False,
) -> None:
    """Run experiments and compare the results with the papers.

    The comparison is printed and written to OUT/reproduction.md.
    `all` resumes where it was stopped.
    """
    from sar_agent.errors import InputError
    from sar_lab.research.papers.registry import experiment, experiments, peer_studies
    from sar_lab.research.papers.reproduction_page import short_verdict, write_page
    from sar_lab.research.papers.result_store import (
        PAGES,
        differences,
        run_rows,
        seeds_of,
        stale_line,
        stored_result,
    )

    run_all = names == ["all"]
    if rerun and not run_all:
        raise InputError("--rerun is for `all`", remedy="named experiments are always run")
    every = [*experiments().values(), *peer_studies().values()]
    chosen = every if run_all else [experiment(name) for name in names]
    results, todo = [], []
    for each in chosen:
        drawn = seeds_of(each, first, seeds, quick)
        earlier = stored_result(out, each.name) if run_all and not (rerun or judge) else None
        if earlier and earlier["seeds"] == list(drawn):
            results.append(earlier)
        else:
            todo.append((each, drawn))
    began = time.monotonic()
    recorded = run_all or check
    for result in run_rows(todo, out, judge, processes, fresh=check, recorded=recorded):
        results.append(result)
        if line := stale_line(result, fresh=check):
            typer.echo(line, err=True)
        write_page(out)
        if run_all:
            how = f"{len(results)} of {len(chosen)}: {result['name']}, {result['seconds']} s"
            typer.echo(f"{how}: {short_verdict(result)}", err=as_json)
        elif not as_json:
            typer.echo(f"{result['where']}\npublished: {result['published']}\n{result['table']}")
            typer.echo(f"verdict: {result['verdict']} ({result['seconds']} s)\n")
    page = write_page(out)
    for name in sorted({each.name for each in chosen} - {row["name"] for row in results}):
        typer.echo(
            f"{name}: not measured here; `sar-lab lab run {name}` does, as root on a quiet machine",
            err=True,
        )
    apart = [line for row in results if check for line in differences(row, PAGES)]
    for line in apart:
        typer.echo(line, err=True)
    if as_json:
        rows = [{k: v for k, v in each.items() if k != "table"} for each in results]
        print_json({"page": str(page), "rows": rows})
    else:
        if run_all:
            core, wall = sum(row["seconds"] for row in results), time.monotonic() - began
            typer.echo(f"{len(results)} rows: {core:.0f} s of processors, {wall:.0f} s now")
        if check and results and not apart:
            typer.echo("every claim is judged as in the repository")
        typer.echo(f"Open {page.resolve()}")
    if apart:
        raise typer.Exit(1)
