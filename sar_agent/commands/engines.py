"""`sar-agent engines`: the routing engines that are installed."""

from __future__ import annotations

from typing import Annotated

import typer

from sar_agent.commands.inputs import JsonOption, print_answer


def engines(
    everything: Annotated[
        bool, typer.Option("--all", help="also those for special fabrics and for comparison")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the routing engines for sites, one a line: name and summary."""
    from sar_agent.routing import engine_names, load_engine, site_engines

    shown = site_engines()
    others = [name for name in engine_names() if name not in shown]
    if everything:
        shown += tuple(others)
    summaries = {name: load_engine(name).summary for name in shown}
    width = max(map(len, summaries))
    lines = [f"{name:{width}}  {summary}" for name, summary in summaries.items()]
    if not everything:
        lines.append(f"`sar-agent engines --all` lists {len(others)} more")
    listed = [{"name": name, "summary": summary} for name, summary in summaries.items()]
    print_answer({"engines": listed}, "\n".join(lines), as_json=as_json)
