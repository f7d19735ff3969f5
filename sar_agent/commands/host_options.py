"""Options of all offline commands that read a fabric: which node is which host, and of those that
read jobs, whom each port of a job sends to; of the latter, `run`, `once` and `explain`, too.

They mean what the keys of section `[fabric]` mean to the agent. They hold for every fabric that the
command reads, so they are not handed from function to function.
"""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from sar_agent.commands.more_options import with_parameters

if TYPE_CHECKING:
    from sar_agent.config.model import Config
    from sar_agent.fabric import Fabric
    from sar_agent.fabric.hostnames import HostMapper


TrafficOption = Annotated[
    str | None,
    typer.Option(
        "--traffic",
        metavar="rail|alltoall",
        help="where hosts have several ports: rail, each port of a job's hosts sends to the "
        "same port of the others, as NCCL does, and each rail of a job is a part of its own; "
        "alltoall, to all ports; without it, as fabric.traffic of the configuration says, else "
        "rail if the fabric is rail-optimised (each port of a host ends on leaf switches of its "
        "own)",
    ),
]


@dataclass(frozen=True)
class HostOptions:
    """What a user chose; None means the default, or what `config` says."""

    job_hcas: Annotated[
        list[str] | None,
        typer.Option(
            "--hca",
            metavar="GLOB",
            help="HCAs (mlx5_[0-11]) or HCA ports (mlx5_0/1) that jobs use, where hosts have "
            "several; may be repeated; without it, all",
        ),
    ] = None
    host_pattern: Annotated[
        str | None,
        typer.Option(
            "--host-pattern",
            help="regular expression for a whole node description, with a group host",
        ),
    ] = None
    storage_hosts: Annotated[
        list[str] | None,
        typer.Option("--storage-hosts", metavar="GLOB", help="hosts of storage; may be repeated"),
    ] = None
    short_names: Annotated[
        bool | None,
        typer.Option(
            "--short-names/--long-names",
            help="whether n001.cluster.org is the host n001 (default) or n001.cluster.org",
        ),
    ] = None
    slurm_names: Annotated[
        list[str] | None,
        typer.Option(
            "--slurm-names",
            metavar="SLURM=FABRIC",
            help="how Slurm calls a node, and how node descriptions call it: "
            "'node[001-144]=c[1-144]' or 'node*=ib-*'; may be repeated",
        ),
    ] = None
    traffic: TrafficOption = None
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            help="configuration file of the agent, for what its [fabric] says of hosts, and its "
            "[cables] of what to leave out",
        ),
    ] = None

    def mapper(self) -> HostMapper:
        """Maps node descriptions to hosts. Raises `SarError` for a pattern or a file that cannot be
        used."""
        from sar_agent.config.model import load_config
        from sar_agent.fabric.hostnames import HostMapper

        mapper = load_config(self.config).fabric.mapper if self.config else HostMapper()
        chosen = {key: value for key, value in asdict(self).items() if value is not None}
        chosen.pop("config", None)
        return replace(mapper, **chosen)


def with_traffic(settings: Config, traffic: str | None) -> Config:
    """The settings with what `--traffic` says in place of `fabric.traffic`. Raises `InputError` for
    a word that is neither."""
    from sar_agent.fabric.hostnames import HostMapper

    if traffic is None:
        return settings
    fabric = settings.fabric.model_copy(update={"traffic": HostMapper(traffic=traffic).traffic})
    return settings.model_copy(update={"fabric": fabric})


JOBS_ONLY_NAMED = ("anonymize", "rank_order")
"""Commands that read jobs, and neither plan for them nor measure them."""
_HINTS = get_type_hints(HostOptions, include_extras=True)
_CHOSEN = ContextVar("_CHOSEN", default=HostOptions())  # noqa: B039 - it is frozen


def with_host_options(command: Callable[..., None]) -> Callable[..., None]:
    """Gives `command` the options that it does not have itself; `load_given` heeds them."""
    own = inspect.signature(command).parameters
    offered = [field.name for field in fields(HostOptions) if field.name not in own]
    if not {"jobs", "history"} & own.keys() or command.__name__ in JOBS_ONLY_NAMED:
        offered.remove("traffic")

    @wraps(command)
    def call(*positional: Any, **named: Any) -> None:
        chosen = {name: named.pop(name) for name in offered if name in named}
        token = _CHOSEN.set(HostOptions(**chosen))
        try:
            command(*positional, **named)
        finally:
            _CHOSEN.reset(token)

    return with_parameters(call, command, [(name, None, _HINTS[name]) for name in offered])


def chosen_settings() -> Config | None:
    """The settings that `--config` of this command names; None without it. Raises `SarError` for a
    file that cannot be used."""
    from sar_agent.config.model import load_config

    chosen = _CHOSEN.get().config
    return load_config(chosen) if chosen else None


def load_given(spec: str) -> Fabric:
    """The fabric that `spec` names, with the hosts that the command's options tell.

    Raises `InputError` if it cannot be read, or if nothing of it fits a pattern of `--hca`,
    `--storage-hosts` or `--slurm-names`.
    """
    from sar_agent.errors import InputError
    from sar_agent.fabric.spec import GENERATORS, load_fabric
    from sar_agent.fabric.unmatched import unmatched

    chosen = _CHOSEN.get()
    generated = re.match(f"({'|'.join(GENERATORS)}):", spec)
    dumps = {"--hca": chosen.job_hcas, "--host-pattern": chosen.host_pattern}
    dumps |= {"--slurm-names": chosen.slurm_names}
    if generated and (options := [option for option, value in dumps.items() if value]):
        raise InputError(
            f"{options[0]} is for dumps",
            remedy="hosts of a generated fabric have one HCA, and the names of Slurm",
        )
    mapper = chosen.mapper()
    fabric = load_fabric(spec, mapper)
    given = {"job_hcas": "--hca", "storage_hosts": "--storage-hosts"}
    given |= {"slurm_names": "--slurm-names"}
    for each in unmatched(fabric, mapper):
        if each.key in given and getattr(chosen, each.key):
            raise InputError(
                f"{given[each.key]} {shlex.quote(each.pattern)}: no {each.what} fits",
                file=spec,
                remedy=each.there,
            )
    return fabric
