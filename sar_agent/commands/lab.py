"""`sar-agent lab`: the papers' tables and figures, computed anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sar_agent.commands.output import JsonOption, print_json


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    lab = typer.Typer(help="The papers' tables and figures, computed anew.", no_args_is_help=True)
    app.add_typer(lab, name="lab")

    @lab.command("list")
    def list_(as_json: JsonOption = False) -> None:
        """List them: name, where it is from, how near one can come, what was published."""
        from sar_agent.lab.papers.registry import CLASSES, experiments

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
        name: Annotated[str, typer.Argument(help="see `sar-agent lab list`")],
        out: Annotated[Path, typer.Option("--out", help="folder for pictures")] = Path("out/lab"),
        seeds: Annotated[
            int | None, typer.Option("--seeds", min=1, help="how many; the more the surer")
        ] = None,
        first: Annotated[int, typer.Option("--seed", min=0, help="the first of them")] = 0,
        as_json: JsonOption = False,
    ) -> None:
        """Run one, and say how what comes out compares with the paper."""
        from sar_agent.lab.papers.registry import experiment

        chosen = experiment(name)
        out.mkdir(parents=True, exist_ok=True)
        result = chosen.run(range(first, first + (seeds or chosen.SEEDS)), out)
        if as_json:
            print_json(
                {
                    "name": chosen.NAME,
                    "where": chosen.WHERE,
                    "class": chosen.CLASS,
                    "published": chosen.PUBLISHED,
                    "ours": result.ours,
                    "verdict": result.verdict,
                    "picture": str(result.picture) if result.picture else None,
                }
            )
            return
        typer.echo(f"{chosen.WHERE}\npublished: {chosen.PUBLISHED}")
        if result.table:
            typer.echo(result.table)
        typer.echo(f"verdict: {result.verdict}")
        if result.picture:
            typer.echo(f"Look at it: {result.picture.resolve()}")
