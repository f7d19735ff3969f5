"""The command `leave`: OpenSM's own tables, installed before OpenSM routes by itself again."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from sar_agent.agent.build import Site
from sar_agent.agent.install_held import ChosenTables, install_held
from sar_agent.agent.state import State
from sar_agent.config.model import Config
from sar_agent.errors import InputError, SarError
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.util.plural import plural
from sar_lab.live.ibsim import umad2sim
from sar_lab.live.process import find_program
from sar_lab.opensm_tables.simulated import ENGINES, routing_options, simulated_routes

NEXT = "Now stop the agent, take sar out of routing_engine in opensm.conf, and restart OpenSM"


def leave(config: Config, engine: str, opensm_conf: Path, site: Site | None = None) -> str:
    """What was done, in words. Raises `InputError` for an engine whose tables need its own lanes
    and for an `opensm_conf` that cannot be read, `Unserved` where OpenSM's engine refuses the
    fabric, and as `install_held`; then nothing has changed."""
    if engine not in ENGINES:
        raise InputError(
            f"{engine!r} is not an engine of OpenSM whose tables stand alone",
            remedy=f"name {', '.join(ENGINES[:-1])} or {ENGINES[-1]}",
        )
    if missing := _missing():
        words = f"the tables of our {engine} ({missing}; OpenSM's may differ among equal ways)"
        tables = partial(_ours, engine=engine)
    else:
        words = f"the tables of OpenSM's {engine}"
        options = routing_options(opensm_conf) if opensm_conf.exists() else {}
        tables = partial(simulated_routes, engine=engine, options=options)

    def choose(site: Site, state: State | None) -> ChosenTables:
        return ChosenTables(engine, words, tables)

    held = install_held(config, choose, "", None, site)
    return (
        f"{held.words} are in force as generation {held.generation}, "
        f"{plural(held.entries, 'entry', 'entries')} "
        f"changed; the agent leaves them {held.until}. {NEXT}"
    )


def _missing() -> str:
    """Why OpenSM cannot be simulated here; empty if it can."""
    try:
        find_program("ibsim", "ibsim-utils")
        find_program("opensm", "opensm")
        umad2sim()
    except SarError as error:
        return str(error).partition(":")[0]
    return ""


def _ours(fabric: Fabric, engine: str) -> Routes:
    return load_engine(engine).route(fabric, JobMix(()), Options())
