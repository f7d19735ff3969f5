"""What `simulate` does: networks in, one table or JSON object out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sar_agent.commands.inputs import print_json
from sar_agent.errors import InputError
from sar_lab.commands.whose_routes import Source, require_some, tables_of

if TYPE_CHECKING:
    from sar_agent.fabric.model import I32
    from sar_lab.orcs import Congestion, Network


@dataclass(frozen=True)
class Asked:
    """What is to be counted."""

    pattern: str
    metric: str
    order: Path | None
    group: Path | None
    first: int | None
    ranks: int | None
    runs: int
    seed: int


def time(source: Source, pattern: str, as_json: bool) -> None:
    """How long each job's all-to-all takes."""
    from rich.console import Console

    from sar_lab.fluid import PATTERNS, job_times
    from sar_lab.fluid.times_table import times_table

    if pattern not in PATTERNS:
        raise InputError(
            f"no pattern is called {pattern!r}",
            remedy=f"one of {', '.join(PATTERNS)}, or with --metric one of ORCS's",
        )
    if source.jobs is None:
        raise InputError("nobody sends", remedy="give --jobs FILE or mix:SEED, or --trace FILE")
    require_some(source)
    network, mix, found = tables_of(source)
    if not mix.jobs:
        raise InputError(
            f"no job of {source.jobs} spans two leaf switches", remedy="give other jobs"
        )
    times = {name: job_times(network, mix, each, PATTERNS[pattern]) for name, each in found.items()}
    if as_json:
        results = [{"engine": name, **each.json()} for name, each in times.items()]
        print_json({"pattern": pattern, "jobs": len(mix.jobs), "results": results})
        return
    typer.echo(
        f"{pattern} in {len(mix.jobs)} multi-switch jobs at once on {network.terminals} "
        "terminals; 1.00 = as fast as without contention"
    )
    Console(highlight=False).print(times_table(times))


def congestion(source: Source | Path, asked: Asked, as_json: bool) -> None:
    """Messages that share a link."""
    from rich.console import Console

    from sar_lab.orcs import network_of_routes
    from sar_lab.orcs.congestion_table import congestion_table
    from sar_lab.orcs.dot import read_network

    if isinstance(source, Path):
        found = {str(source): _count(read_network(source), asked)}
    else:
        require_some(source)
        fabric, _, routes = tables_of(source)
        found = {
            name: _count(network_of_routes(fabric, each), asked) for name, each in routes.items()
        }
    results: list[dict[str, Any]] = [{"engine": k, **each.json()} for k, each in found.items()]
    if not as_json:
        Console(highlight=False).print(congestion_table(results))
    elif isinstance(source, Path):
        print_json({"orcs_dot": results[0].pop("engine"), **results[0]})
    else:
        print_json({"pattern": asked.pattern, "metric": asked.metric, "results": results})


def _count(network: Network, asked: Asked) -> Congestion:
    from sar_lab.orcs import schedule_of, simulate

    hosts = len(network.guid)
    ranks = asked.ranks or hosts - hosts % 2
    if not 2 <= ranks <= hosts:
        raise InputError(f"{ranks} ranks on {hosts} hosts", remedy=f"--ranks from 2 to {hosts}")
    return simulate(
        network,
        schedule_of(asked.pattern, ranks, asked.first),
        asked.metric,
        runs=asked.runs,
        seed=asked.seed,
        order=_hosts(asked.order, network),
        group=_hosts(asked.group, network),
    )


def _hosts(path: Path | None, network: Network) -> I32 | None:
    if path is None:
        return None
    from sar_lab.orcs.dot import read_order

    hosts, unknown = read_order(path, network)
    if unknown:
        typer.echo(
            f"sar-agent: note: {unknown} GUIDs of {path} are not in the network and are left out",
            err=True,
        )
    return hosts
