"""`sar-agent lab`: the papers' tables and figures, computed anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sar_agent.commands.inputs import JsonOption, print_json


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    lab = typer.Typer(help="The papers' tables and figures, computed anew.", no_args_is_help=True)
    app.add_typer(lab, name="lab")

    @lab.command("list")
    def list_(as_json: JsonOption = False) -> None:
        """List them: name, how near one can come, where it is from, what was published."""
        from sar_lab.papers.registry import CLASSES, experiments

        known = experiments().values()
        if as_json:
            rows = [
                {"name": e.NAME, "where": e.WHERE, "class": e.CLASS, "published": e.PUBLISHED}
                for e in known
            ]
            print_json({"experiments": rows})
            return
        width = max(len(e.NAME) for e in known)
        for e in known:
            typer.echo(f"{e.NAME:{width}}  {e.CLASS}  {e.WHERE}: {e.PUBLISHED}")
        typer.echo("; ".join(f"{letter}: {meaning}" for letter, meaning in CLASSES.items()))

    @lab.command()
    def run(
        names: Annotated[list[str], typer.Argument(help="see `sar-agent lab list`; or all")],
        out: Annotated[
            Path, typer.Option("--out", help="folder for the page, its pictures and numbers")
        ] = Path("out/lab"),
        seeds: Annotated[
            int | None, typer.Option("--seeds", min=1, help="how many; the more the surer")
        ] = None,
        first: Annotated[int, typer.Option("--seed", min=0, help="the first of them")] = 0,
        quick: Annotated[bool, typer.Option("--quick", help="10 seeds at most")] = False,
        again: Annotated[
            bool, typer.Option("--again", help="with all: also what was run before")
        ] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Run some, and say how what comes out compares with the papers, in DIR/reproduction.md,
        too. `all` goes on where it was stopped."""
        from sar_lab.papers.registry import experiment, experiments
        from sar_lab.papers.reproduction_page import write_page
        from sar_lab.papers.result_store import run_row, seeds_of, stored_result

        whole = names == ["all"]
        chosen = list(experiments().values()) if whole else [experiment(name) for name in names]
        found = []
        for one in chosen:
            drawn = seeds_of(one, first, seeds, quick)
            before = stored_result(out, one.NAME) if whole and not again else None
            if before and before["seeds"] == list(drawn):
                found.append(before)
                continue
            found.append(run_row(one, drawn, out))
            page = write_page(out)
            if not as_json:
                typer.echo(f"{one.WHERE}\npublished: {one.PUBLISHED}\n{found[-1]['table']}")
                typer.echo(f"verdict: {found[-1]['verdict']} ({found[-1]['seconds']} s)\n")
        page = write_page(out)
        if as_json:
            rows = [{k: v for k, v in each.items() if k != "table"} for each in found]
            print_json({"page": str(page), "rows": rows})
            return
        typer.echo(f"Look at it: {page.resolve()}")
