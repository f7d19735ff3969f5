"""`sar-agent leave`: the way back to OpenSM's own routes, by proved steps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sar_agent.commands.inputs import CONFIG_PATH, ConfigOption, JsonOption, print_json


def leave(
    engine: Annotated[str, typer.Option(help="OpenSM's engine: minhop, updn or ftree")],
    config: ConfigOption = CONFIG_PATH,
    opensm_conf: Annotated[
        Path, typer.Option(help="OpenSM's configuration, for files of roots and the like")
    ] = Path("/etc/opensm/opensm.conf"),
    as_json: JsonOption = False,
) -> None:
    """Install the tables that OpenSM's own engine makes, by proved steps, and hold them.

    Then stop the agent, take `sar` out of routing_engine and restart OpenSM: no entry changes. The
    tables come from a stock OpenSM on a simulation of the fabric (package ibsim-utils). Without it
    they are those of our engine of the same name, which may differ; the answer says so.
    """
    from sar_agent.commands.service import for_writing, log_to_stderr
    from sar_lab.leave import leave as go

    log_to_stderr()
    sentence = go(for_writing(config, "leave"), engine, opensm_conf)
    if as_json:
        print_json({"sentence": sentence})
    else:
        typer.echo(sentence)
