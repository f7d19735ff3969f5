"""`sar-lab count-congestion`: how many messages of a pattern share a link, as in ORCS."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sar_agent.commands.announce import note
from sar_agent.commands.inputs import JsonOption, PartitionsOption, print_json
from sar_agent.errors import InputError
from sar_lab.commands.route_sources import EnginesOption, RoutesOption, RouteSources

if TYPE_CHECKING:
    from sar_agent.fabric.model import I32
    from sar_lab.research.orcs import Congestion, Network


def count_congestion(
    fabric: Annotated[
        str | None,
        typer.Option("--fabric", help="the fabric, a file or a generated one, as for `route`"),
    ] = None,
    orcs_dot: Annotated[
        Path | None,
        typer.Option(
            "--orcs-dot", help="graph in ORCS's format, with its routes, instead of --fabric"
        ),
    ] = None,
    jobs: Annotated[
        str | None, typer.Option("--jobs", help="the jobs that job-aware engines route for")
    ] = None,
    engine: EnginesOption = None,
    routes: RoutesOption = None,
    pattern: Annotated[
        str,
        typer.Option("--pattern", help="ORCS's pattern: bisect, neighbor:5, gather::alltoall, …"),
    ] = "bisect",
    metric: Annotated[
        str,
        typer.Option("--metric", help="sum_max_cong, hist_max_cong, hist_acc_band, dep_max_delay"),
    ] = "sum_max_cong",
    ranks: Annotated[
        int | None,
        typer.Option(
            "--ranks",
            help="number of hosts that send; without it, all, rounded down to an even one",
        ),
    ] = None,
    first: Annotated[
        int | None,
        typer.Option("-z", "--first", help="number of ranks that A has in the pattern A::B"),
    ] = None,
    order: Annotated[
        Path | None,
        typer.Option("--order", help="file of GUIDs, one a line: the hosts of the first ranks"),
    ] = None,
    group: Annotated[
        Path | None,
        typer.Option(
            "--group",
            help="file of GUIDs, one a line: the hosts of A in the pattern A::B, in random order",
        ),
    ] = None,
    runs: Annotated[
        int, typer.Option("--runs", min=1, help="runs, each with other hosts behind the ranks")
    ] = 1000,
    partitions: PartitionsOption = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="seed of the runs and of random engines")
    ] = 0,
    as_json: JsonOption = False,
) -> None:
    """Count how many messages of a pattern share a link, as ORCS does."""
    from rich.console import Console

    from sar_lab.research.orcs import network_of_routes, schedule_of, simulate
    from sar_lab.research.orcs.congestion_table import congestion_table
    from sar_lab.research.orcs.dot import read_network

    def count(network: Network) -> Congestion:
        hosts = len(network.guid)
        senders = ranks or hosts - hosts % 2
        if not 2 <= senders <= hosts:
            raise InputError(
                f"{senders} ranks on {hosts} hosts", remedy=f"give --ranks from 2 to {hosts}"
            )
        return simulate(
            network,
            schedule_of(pattern, senders, first),
            metric,
            runs=runs,
            seed=seed,
            order=_hosts(order, network),
            group=_hosts(group, network),
        )

    if orcs_dot is not None:
        if fabric or engine or routes or jobs or partitions:
            raise InputError(
                "--orcs-dot brings its own fabric and routes",
                remedy="leave --fabric, --engine, --routes, --jobs and --partitions out",
            )
        found = {str(orcs_dot): count(read_network(orcs_dot))}
    else:
        if fabric is None:
            raise InputError("no fabric", remedy="give --fabric F or --orcs-dot FILE")
        sources = RouteSources(fabric, jobs, engine or [], routes or [], partitions, seed)
        sources.require_any()
        model, _, tables = sources.tables()
        found = {name: count(network_of_routes(model, table)) for name, table in tables.items()}
    results: list[dict[str, Any]] = [
        {"engine": name, **each.json()} for name, each in found.items()
    ]
    if not as_json:
        Console(highlight=False).print(congestion_table(results))
    elif orcs_dot is not None:
        print_json({"orcs_dot": results[0].pop("engine"), **results[0]})
    else:
        print_json({"pattern": pattern, "metric": metric, "results": results})


def _hosts(path: Path | None, network: Network) -> I32 | None:
    if path is None:
        return None
    from sar_lab.research.orcs.dot import read_order

    hosts, unknown = read_order(path, network)
    if unknown:
        note(f"note: {unknown} GUIDs of {path} are not in the network and are left out")
    return hosts
