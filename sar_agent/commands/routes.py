"""`route`, `measure`, `check`: one engine on one fabric, offline; nothing is installed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sar_agent.commands.inputs import (
    FabricOption,
    JobsOption,
    JsonOption,
    peak_rss_mb,
    print_json,
    read_fabric,
    read_mix,
    read_partitions,
    read_routes,
)

if TYPE_CHECKING:
    from sar_agent.fabric import Fabric
    from sar_agent.routing import Routes

RoutesOption = Annotated[
    Path,
    typer.Option(
        "--routes",
        help="folder of `route --out`, OpenSM's opensm-lfts.dump or opensm.fdbs, or what dump_fts "
        "or ibroute print",
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the commands."""

    @app.command()
    def route(
        fabric: FabricOption,
        jobs: JobsOption,
        engine: Annotated[
            str, typer.Option("--engine", help="see `sar-agent engines`")
        ] = "sar-plus",
        out: Annotated[Path | None, typer.Option("--out", help="folder to write to")] = None,
        export: Annotated[
            str, typer.Option("--export", help="comma-separated: lfts, ibdm, ibsim, orcs")
        ] = "",
        seed: Annotated[int, typer.Option("--seed", help="for engines that draw")] = 0,
        objective: Annotated[
            Literal["load", "routes"], typer.Option("--objective", help="what sar-plus makes least")
        ] = "load",
        lmc: Annotated[
            int, typer.Option("--lmc", min=0, max=7, help="2**LMC LID offsets may be used")
        ] = 0,
        pattern: Annotated[
            str,
            typer.Option("--pattern", help="for colored, ark, nrk: shift:3, ring, …, or a file"),
        ] = "",
        partitions: Annotated[
            Path | None,
            typer.Option(
                "--partitions", help="for pftree…: a policy file (TOML) or OpenSM's partitions.conf"
            ),
        ] = None,
        combine: Annotated[
            float,
            typer.Option("--combine", min=0, max=1, help="A for pftree-combined: 1 -ext … 0 -wt"),
        ] = 0.5,
        lanes: Annotated[
            Literal["hop", "path"],
            typer.Option("--lanes", help="chosen by ports where possible, or by service level"),
        ] = "hop",
        max_lanes: Annotated[
            int, typer.Option("--max-lanes", min=1, max=15, help="virtual lanes that may be used")
        ] = 8,
        best_effort: Annotated[
            bool,
            typer.Option(
                "--best-effort", help="Up*/Down* paths for what needs more lanes, not exit code 1"
            ),
        ] = False,
        spread_lanes: Annotated[
            bool, typer.Option("--spread-lanes", help="use all lanes where one is not enough")
        ] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Compute routes and check them; write them to a folder. Exit code 1 if a check fails."""
        from sar_agent.check import check_routes
        from sar_agent.commands.source_routed import describe, write_offsets
        from sar_agent.errors import InputError
        from sar_agent.formats.export import EXPORTS, export_routes
        from sar_agent.formats.routes_folder import write_routes_folder
        from sar_agent.routing import Options, load_engine
        from sar_agent.routing.engine import is_source_routed
        from sar_agent.routing.lanes import routed

        forms = [form for form in export.split(",") if form]
        if wrong := [form for form in forms if form not in EXPORTS]:
            raise InputError(
                f"cannot export {wrong[0]!r}", remedy=f"known are {', '.join(EXPORTS)}"
            )
        if forms and out is None:
            raise InputError("--export needs a folder", remedy="add --out DIR")
        chosen = load_engine(engine)
        network = read_fabric(fabric)
        mix = read_mix(jobs, network)
        options = Options(
            seed=seed,
            objective=objective,
            lmc=lmc,
            pattern=pattern,
            partitions=read_partitions(partitions, network, mix),
            combine=combine,
            lanes=lanes,
            max_lanes=max_lanes,
            best_effort=best_effort,
            spread_lanes=spread_lanes,
        )
        if is_source_routed(chosen) and out is None:
            found, words = describe(chosen, network, mix, options)
            if as_json:
                print_json(found)
            else:
                typer.echo(words)
            return
        if as_json:
            # The contract's `seconds` is the routing step with kernels warm; loading or compiling
            # them belongs to the first call.
            routed(chosen, network, mix, options)
        routes = routed(chosen, network, mix, options)
        verdict = check_routes(network, routes)
        if out is not None and verdict.passed:
            write_routes_folder(out, network, routes)
            export_routes(out, network, routes, forms)
            if is_source_routed(chosen):
                paths = chosen.paths(network, mix, options)
                if paths.one_root_per_source:
                    write_offsets(out / "lid_offsets.txt", paths)
        if as_json:
            print_json(
                {
                    "engine": routes.engine,
                    "seconds": routes.seconds,
                    "virtual_lanes": routes.virtual_lanes,
                    "needs_host_levels": routes.needs_host_levels,
                    "remarks": list(routes.remarks),
                    "unreachable_pairs": verdict.unreachable_pairs,
                    "peak_rss_mb": peak_rss_mb(),
                    "deadlock_free": verdict.deadlock_free,
                    "deadlock_free_everyone": verdict.deadlock_free_everyone,
                    "problems": list(verdict.problems),
                    "jobs": len(mix.jobs),
                    "digest": routes.digest.hex(),
                }
            )
        verdict.require()
        if not as_json:
            typer.echo(
                f"{routes.engine}: {network.destinations} destinations on {network.switches} "
                "switches, every pair reached, no credit loop"
                + (f" in {routes.virtual_lanes} virtual lanes" if routes.virtual_lanes > 1 else "")
                + (f"; written to {out}" if out else "")
            )
            _notes(network, routes)

    @app.command()
    def measure(
        fabric: FabricOption, jobs: JobsOption, routes: RoutesOption, as_json: JsonOption = False
    ) -> None:
        """Dark fiber, effective EFI, links and throughput per job, with lower bounds."""
        from sar_agent.check.reachability import check_reachability
        from sar_agent.errors import CheckFailed
        from sar_agent.quality import measure as measure_routes

        network = read_fabric(fabric)
        mix = read_mix(jobs, network)
        found = read_routes(routes, network)
        reach = check_reachability(network, found, between_hosts=True)
        if reach.unreachable_pairs:
            raise CheckFailed(
                f"{routes}: {reach.unreachable_pairs} pairs do not reach; {reach.first}"
            )
        measures = measure_routes(network, mix, found, price_rounds=64, price_seconds=1.0)
        if as_json:
            print_json(measures.json())
            return
        bounds = measures.lower_bounds
        typer.echo(
            f"{measures.jobs} multi-switch jobs on {measures.terminals} terminals, "
            f"{measures.switches} switches, {measures.channels} channels\n"
            f"dark fiber           {measures.dark_fiber_ratio:.1%} "
            f"(bound {measures.least_dark_fiber:.1%})\n"
            f"effective EFI        max {measures.effective_efi_max} "
            f"(bound {bounds.efi_max}: {bounds.efi_by}), "
            f"mean {measures.effective_efi_mean:.1f}\n"
            f"load                 max {measures.load_max:.2f} "
            f"(bound {bounds.load_max:.2f}: {bounds.load_by})\n"
            f"all-to-all share     mean {measures.throughput_mean:.2f}, "
            f"worst job {measures.throughput_min:.2f} of full speed\n"
            "bounds: what no shortest paths can go below"
        )

    @app.command()
    def check(
        fabric: FabricOption,
        routes: RoutesOption,
        before: Annotated[
            Path | None,
            typer.Option(
                "--from",
                help="the routes in force, likewise: count what changes, and say whether and how "
                "it may change while packets travel",
            ),
        ] = None,
        as_json: JsonOption = False,
    ) -> None:
        """Prove that every pair is reached without loop or credit loop; exit code 1 otherwise, or
        where no safe way leads there."""
        from sar_agent.check import check_routes

        network = read_fabric(fabric)
        found = read_routes(routes, network)
        verdict = check_routes(network, found)
        entries = blocks = transition = None
        if before is not None:
            from sar_agent.check.transition import examine
            from sar_agent.install.changes import table_changes

            old = read_routes(before, network)
            entries, blocks = table_changes(network, old, found)
            if verdict.passed:
                transition = examine(network, old, found)
        if as_json:
            print_json(
                {
                    "engine": found.engine,
                    "ok": verdict.passed,
                    "unreachable_pairs": verdict.unreachable_pairs,
                    "virtual_lanes": verdict.virtual_lanes,
                    "needs_host_levels": found.needs_host_levels,
                    "deadlock_free": verdict.deadlock_free,
                    "deadlock_free_everyone": verdict.deadlock_free_everyone,
                    "lanes_hop_by_hop": verdict.hop_by_hop,
                    "problems": list(verdict.problems),
                    "entries_changed": entries,
                    "blocks_changed": blocks,
                    "transition": transition and transition.way.value,
                    "transition_stages": transition and len(transition.stages),
                    "transition_says": transition and transition.words,
                }
            )
        verdict.require()
        if not as_json:
            typer.echo(
                f"{found.engine}: every pair is reached without a loop; no credit loop in "
                + verdict.lanes_hold
                + ("" if entries is None else f"; {entries} entries in {blocks} blocks change")
            )
            if transition:
                typer.echo(f"from {before}: {transition.words}")
            if not verdict.deadlock_free_everyone:
                typer.echo(
                    "note: traffic to the switches' own LIDs or of their aggregation units could "
                    "close a credit loop; no jobs' packets take part"
                )
        if transition and not transition.stages:
            from sar_agent.errors import CheckFailed

            raise CheckFailed(f"from {before}: {transition.words}")


def _notes(fabric: Fabric, routes: Routes) -> None:
    """What a person should know of routes that passed."""
    from sar_agent.check import check_routes

    for remark in routes.remarks:
        typer.echo(f"note: {remark}")
    if not routes.needs_host_levels:
        return
    what = "note: needs hosts that take their SL from path records; those that always send in SL 0 "
    if check_routes(fabric, replace(routes, service_level=None, virtual_lanes=1)).passed:
        typer.echo(f"{what}are kept apart from nobody")
    else:
        typer.echo(f"{what}can close a credit loop (docs/lanes.md)")
