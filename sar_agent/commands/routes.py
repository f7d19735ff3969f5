"""`route`, `measure`, `check`: compute and judge routes offline; nothing is installed."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sar_agent.commands.engine_options import with_engine_options
from sar_agent.commands.host_options import with_host_options
from sar_agent.commands.inputs import (
    EngineOption,
    FabricOption,
    JobsOption,
    JsonOption,
    PartitionsOption,
    peak_rss_mb,
    present,
    print_answer,
    print_json,
    read_fabric,
    read_mix,
    read_partitions,
    read_routes,
)
from sar_agent.config.engine import Options
from sar_agent.util.plural import plural

if TYPE_CHECKING:
    from sar_agent.check import ProvedTables
    from sar_agent.check.certificate import LaneNumbers
    from sar_agent.fabric import Fabric
    from sar_agent.routing import Routes

DEFAULTS = Options()
RoutesOption = Annotated[
    Path,
    typer.Option(
        "--routes",
        callback=present,
        help="the routes: a folder that `route --out` wrote, OpenSM's opensm-lfts.dump or "
        "opensm.fdbs, or the output of dump_fts or ibroute",
    ),
]


@with_host_options
@with_engine_options
def route(
    fabric: FabricOption,
    jobs: JobsOption,
    engine: EngineOption = "sar-plus",
    out: Annotated[
        Path | None, typer.Option("--out", file_okay=False, help="folder to write the routes to")
    ] = None,
    export: Annotated[
        str,
        typer.Option(
            "--export",
            help="also write these formats to that folder, separated by commas: lfts, ibdm, ibsim, "
            "orcs",
        ),
    ] = "",
    partitions: PartitionsOption = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="compute and check, but write nothing; name what --out gets"
        ),
    ] = False,
    as_json: JsonOption = False,
    *,
    options: Options = DEFAULTS,
) -> None:
    """Compute routes, check them, and write them to a folder; exit code 1 if a check fails."""
    from sar_agent.check import check_routes
    from sar_agent.formats.export import export_routes
    from sar_agent.formats.routes_folder import write_routes_folder
    from sar_agent.routing import load_engine
    from sar_agent.routing.engine import is_source_routed
    from sar_agent.routing.lanes import routed

    formats = _export_formats(export, out)
    chosen = load_engine(engine)
    network = read_fabric(fabric)
    mix = read_mix(jobs, network)
    options = replace(options, partitions=read_partitions(partitions, network, mix))
    if is_source_routed(chosen) and out is None:
        print_answer(*chosen.describe(network, mix, options), as_json=as_json)
        return
    if as_json:
        # `seconds` is the time of routing with compiled kernels: the first call loads or compiles
        # them.
        routed(chosen, network, mix, options)
    began = time.perf_counter()
    routes = routed(chosen, network, mix, options)
    seconds = time.perf_counter() - began
    verdict = check_routes(network, routes)
    if out is not None and verdict.passed and not dry_run:
        write_routes_folder(out, network, routes)
        export_routes(out, network, routes, formats)
        if is_source_routed(chosen):
            chosen.write_offsets(out / "lid_offsets.txt", network, mix, options)
    if as_json:
        print_json(
            {
                "engine": routes.engine,
                "seconds": seconds,
                "virtual_lanes": routes.virtual_lanes,
                "needs_host_levels": routes.needs_host_levels,
                "remarks": list(routes.remarks),
                "unreachable_pairs": verdict.unreachable_pairs,
                "peak_rss_mb": peak_rss_mb(),
                "deadlock_free": verdict.deadlock_free,
                "deadlock_free_everyone": verdict.deadlock_free_everyone,
                "problems": list(verdict.problems),
                "jobs": len(mix.whole_jobs),
                "parts": len(mix.jobs),
                "digest": routes.digest.hex(),
                "written": str(out) if out is not None and verdict.passed and not dry_run else None,
            }
        )
    verdict.require()
    if not as_json:
        typer.echo(
            f"{routes.engine}: {network.destinations} destinations on {network.switches} "
            "switches, every pair reached, no credit loop"
            + (f" in {routes.virtual_lanes} virtual lanes" if routes.virtual_lanes > 1 else "")
            + (f"; {'would be ' * dry_run}written to {out}" if out else "")
        )
        _print_notes(network, routes)


@with_host_options
def measure(
    fabric: FabricOption,
    jobs: JobsOption,
    routes: RoutesOption,
    adaptive: Annotated[
        list[Path] | None,
        typer.Option(
            "--adaptive",
            callback=present,
            help="what routes adaptively: opensm.conf of NVIDIA's subnet manager, "
            "ibdiagnet2.db_csv or ibdiagnet2.far; may be repeated",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure routes under jobs: dark fiber, effective EFI, load, throughput, phase contention."""
    from sar_agent.check.reachability import check_reachability
    from sar_agent.demand.collectives import AT_ONCE, COLLECTIVES
    from sar_agent.errors import CheckFailed
    from sar_agent.quality import measure as measure_routes

    network = read_fabric(fabric)
    mix = read_mix(jobs, network)
    tables = read_routes(routes, network)
    reach = check_reachability(network, tables, between_hosts=True)
    if reach.unreachable_pairs:
        raise CheckFailed(
            f"{routes}: {plural(reach.unreachable_pairs, 'pair does', 'pairs do')} not reach "
            f"each other; {reach.first}"
        )
    measures = measure_routes(network, mix, tables, price_rounds=64, price_seconds=1.0)
    report = None
    if adaptive:
        from sar_agent.formats.adaptive_dumps import read_adaptive_dump
        from sar_agent.reports.adaptive import adaptive_report

        report = adaptive_report(measures.traffic, [*map(read_adaptive_dump, adaptive)])
    bounds = measures.lower_bounds
    words = (
        f"{mix.words('multi-switch job')} on {plural(measures.terminals, 'terminal')}, "
        f"{plural(measures.switches, 'switch', 'switches')}, {measures.channels} channels\n"
        f"dark fiber                 {measures.dark_fiber_ratio:.1%} "
        f"(bound {measures.least_dark_fiber:.1%})\n"
        f"effective EFI              max {measures.effective_efi_max} "
        f"(bound {bounds.efi_max}: {bounds.efi_by}), "
        f"mean {measures.effective_efi_mean:.1f}\n"
        f"load                       max {measures.load_max:.2f} "
        f"(bound {bounds.load_max:.2f}: {bounds.load_by})\n"
        f"all messages at once       mean {measures.load_time_mean:.2f}, "
        f"worst job {1 / measures.throughput_min:.2f} times as long as without contention\n"
        + "".join(
            f"{COLLECTIVES[word]:26} mean {each.mean:.2f}, worst job {each.worst:.2f} "
            f"(bound {measures.contention_bounds[word].worst:.2f}); messages of "
            f"{plural(each.meet, 'job')} "
            "meet\n"
            for word, each in measures.collectives.items()
            if word != AT_ONCE
        )
        + "bounds: no routes over shortest paths can be lower"
        + (f"\n{report.words()}" if report else "")
    )
    answer = measures.json() | ({"adaptive": report.json()} if report else {})
    print_answer(answer, words, as_json=as_json)


@with_host_options
def check(
    fabric: FabricOption,
    routes: RoutesOption,
    before: Annotated[
        Path | None,
        typer.Option(
            "--from",
            callback=present,
            help="the routes in force, in the same formats: count the entries that change, and say "
            "whether and how they can change while packets travel",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Prove that routes reach every pair, without a routing loop or a credit loop.

    If a routes file carries a certificate (docs/safety.md), it is verified, too. Exit code 1 if
    something fails, or if there is no safe transition from the routes of --from.
    """
    from sar_agent.check.verdict import check_and_prove
    from sar_agent.errors import CheckFailed

    network = read_fabric(fabric)
    tables = read_routes(routes, network)
    verdict, proved = check_and_prove(network, tables)
    lanes = _certificate(routes, network, tables, proved)
    entries = blocks = transition = None
    if before is not None:
        from sar_agent.check.transition import examine
        from sar_agent.install.changes import table_changes

        tables_before = read_routes(before, network)
        entries, blocks = table_changes(network, tables_before, tables)
        if verdict.passed:
            transition = examine(network, tables_before, tables)
    if as_json:
        print_json(
            {
                "engine": tables.engine,
                "ok": verdict.passed,
                "unreachable_pairs": verdict.unreachable_pairs,
                "virtual_lanes": verdict.virtual_lanes,
                "needs_host_levels": tables.needs_host_levels,
                "deadlock_free": verdict.deadlock_free,
                "deadlock_free_everyone": verdict.deadlock_free_everyone,
                "lanes_hop_by_hop": verdict.hop_by_hop,
                "problems": list(verdict.problems),
                "certificate": lanes
                and {
                    "valid": all(lane.rising for lane in lanes),
                    "lanes": [asdict(lane) | {"rising": lane.rising} for lane in lanes],
                },
                "entries_changed": entries,
                "blocks_changed": blocks,
                "transition": transition and transition.way.value,
                "transition_stages": transition and len(transition.stages),
                "transition_description": transition and transition.words,
            }
        )
    verdict.require()
    falling = [lane for lane in lanes or () if not lane.rising]
    if not as_json:
        typer.echo(
            f"{tables.engine}: every pair is reached without a loop; no credit loop in "
            + verdict.lanes_hold
            + (
                ""
                if entries is None
                else f"; {plural(entries, 'entry', 'entries')} in {plural(blocks, 'block')} change"
            )
        )
        for lane in lanes or ():
            rise = "the numbers rise along every path"
            if not lane.rising:
                rise = f"the numbers do not rise along {plural(lane.falling, 'pair')} of channels"
            typer.echo(f"certificate, lane {lane.lane}: {lane.channels} channels, {rise}")
        if transition:
            typer.echo(f"from {before}: {transition.words}")
        if not verdict.deadlock_free_everyone:
            typer.echo(
                "note: traffic to the LIDs of the switches or of their aggregation units could "
                "close a credit loop; packets of jobs take no part in it"
            )
    if falling:
        raise CheckFailed(
            f"the certificate of {routes} is not valid: lane {falling[0].lane}: {falling[0].first}"
        )
    if transition and not transition.stages:
        raise CheckFailed(f"from {before}: {transition.words}")


def _certificate(
    path: Path, fabric: Fabric, routes: Routes, proved: ProvedTables | None
) -> tuple[LaneNumbers, ...] | None:
    """The certificate of a routes file by lane; None where the routes have none, or failed."""
    from sar_agent.check.certificate import judge_certificate
    from sar_agent.formats.conversion import file_to_numbers
    from sar_agent.formats.read_tables import read_carried

    file = read_carried(path) if proved else None
    numbers = file_to_numbers(fabric, file) if file else None
    if proved is None or numbers is None:
        return None
    return judge_certificate(fabric, proved, routes.senders, numbers)


def _export_formats(export: str, out: Path | None) -> list[str]:
    from sar_agent.errors import InputError
    from sar_agent.formats.export import EXPORTS

    formats = [name for name in export.split(",") if name]
    if unknown := [name for name in formats if name not in EXPORTS]:
        raise InputError(
            f"{unknown[0]!r} is not an export format", remedy=f"choose from {', '.join(EXPORTS)}"
        )
    if formats and out is None:
        raise InputError("--export needs a folder", remedy="add --out DIR")
    return formats


def _print_notes(fabric: Fabric, routes: Routes) -> None:
    """Prints what an operator should know about routes that passed the check."""
    from sar_agent.check import check_routes

    for remark in routes.remarks:
        typer.echo(f"note: {remark}")
    if not routes.needs_host_levels:
        return
    if check_routes(fabric, replace(routes, service_level=None, virtual_lanes=1)).passed:
        consequence = "cannot deadlock but is not isolated"
    else:
        consequence = "can close a credit loop (docs/lanes.md)"
    typer.echo(
        "note: hosts must take the service level from path records; traffic of hosts that always "
        f"use SL 0 {consequence}"
    )
