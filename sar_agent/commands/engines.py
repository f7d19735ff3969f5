"""`sar-agent engines`: the routing engines that are installed."""

from __future__ import annotations

import typer

from sar_agent.commands.inputs import JsonOption, print_json


def engines(as_json: JsonOption = False) -> None:
    """List the routing engines, one a line: name and summary."""
    from sar_agent.routing import engine_names, load_engine

    summaries = {name: load_engine(name).summary for name in engine_names()}
    if as_json:
        print_json({"engines": [{"name": n, "summary": s} for n, s in summaries.items()]})
        return
    width = max(map(len, summaries))
    for name, summary in summaries.items():
        typer.echo(f"{name:{width}}  {summary}")
