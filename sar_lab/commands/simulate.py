"""`sar-agent simulate`: what given routes do to traffic, in messages a link or in time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from sar_agent.commands.inputs import JsonOption

FabricOption = Annotated[
    str | None, typer.Option("--fabric", help="file or spec, as for the other commands")
]
JobsOption = Annotated[
    str | None,
    typer.Option("--jobs", help="who sends (time), or what the engine is to know (congestion)"),
]


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command()
    def simulate(
        fabric: FabricOption = None,
        jobs: JobsOption = None,
        engine: Annotated[
            list[str] | None, typer.Option("--engine", help="see `sar-agent engines`; repeatable")
        ] = None,
        routes: Annotated[
            list[Path] | None,
            typer.Option(
                "--routes",
                help="folder that `route --out` wrote, or opensm-lfts.dump; repeatable",
            ),
        ] = None,
        pattern: Annotated[
            str | None,
            typer.Option(
                "--pattern",
                help="time: alltoall (all at once), shift, shift-free; congestion: ORCS's, "
                "e.g. bisect, neighbor:5, gather::alltoall",
            ),
        ] = None,
        metric: Annotated[
            str | None,
            typer.Option(
                "--metric",
                help="congestion: sum_max_cong, hist_max_cong, hist_acc_band, dep_max_delay",
            ),
        ] = None,
        orcs_dot: Annotated[
            Path | None, typer.Option("--orcs-dot", help="ORCS's graph instead of --fabric")
        ] = None,
        order: Annotated[
            Path | None,
            typer.Option("--order", help="GUIDs, one a line: hosts that have the first ranks"),
        ] = None,
        first: Annotated[
            int | None, typer.Option("-z", "--first", help="ranks of the first pattern of A::B")
        ] = None,
        group: Annotated[
            Path | None,
            typer.Option("--group", help="GUIDs of the first group, whose ranks are drawn in it"),
        ] = None,
        ranks: Annotated[
            int | None, typer.Option("--ranks", help="hosts that send; all, but an even number")
        ] = None,
        runs: Annotated[
            int, typer.Option("--runs", min=1, help="with other hosts behind the ranks")
        ] = 1000,
        seed: Annotated[int, typer.Option("--seed", min=0, help="for what is drawn")] = 0,
        partitions: Annotated[
            Path | None, typer.Option("--partitions", help="for pftree…, as for `route`")
        ] = None,
        trace: Annotated[
            Path | None, typer.Option("--trace", help="programs to play, see `make-trace`")
        ] = None,
        place: Annotated[
            Literal["random", "linear"],
            typer.Option("--place", help="where a trace's ranks sit, without --jobs"),
        ] = "random",
        key: Annotated[
            list[str] | None,
            typer.Option(
                "--key", help="KEY=OFFSET or JOB/KEY=OFFSET: a key's LID offset; repeatable"
            ),
        ] = None,
        keys: Annotated[
            list[str] | None,
            typer.Option("--keys", help="ark, nrk: a row with a routing key a request; repeatable"),
        ] = None,
        request_time: Annotated[
            str, typer.Option("--request-time", help="how long a program waits for a key")
        ] = "0us",
        adaptive: Annotated[
            bool, typer.Option("--adaptive", help="also a Conga-like adaptive peer (XGFTs)")
        ] = False,
        flowlet: Annotated[
            str, typer.Option("--flowlet", help="adaptive: bytes that stay on one way")
        ] = "64KB",
        feedback: Annotated[
            str,
            typer.Option("--feedback", help="adaptive: how often, and how old, loads are known"),
        ] = "20us",
        load_levels: Annotated[
            int, typer.Option("--load-levels", min=1, help="adaptive: how finely")
        ] = 8,
        as_json: JsonOption = False,
    ) -> None:
        """Time of jobs' traffic on given routes; with --metric, congestion as ORCS counts it."""
        from sar_agent.errors import InputError
        from sar_lab.commands import played, simulated
        from sar_lab.commands.whose_routes import Source

        if orcs_dot is None and fabric is None:
            raise InputError("nothing to simulate on", remedy="give --fabric F or --orcs-dot FILE")
        if orcs_dot is not None and (fabric or engine or routes):
            raise InputError(
                "--orcs-dot is a fabric with its routes", remedy="leave --fabric and --engine out"
            )
        source = Source(fabric or "", jobs, engine or [], routes or [], partitions, seed)
        if trace is not None:
            if orcs_dot or metric or pattern:
                raise InputError(
                    "--trace says what is sent and --fabric where",
                    remedy="leave --orcs-dot, --metric and --pattern out",
                )
            peer = (flowlet, feedback, load_levels) if adaptive else None
            wanted = played.Wanted(trace, place, key or [], keys or [], request_time, peer)
            played.trace(source, wanted, as_json)
            return
        if orcs_dot is None and metric is None:
            simulated.time(source, pattern or "alltoall", as_json)
            return
        simulated.congestion(
            source if orcs_dot is None else orcs_dot,
            simulated.Asked(
                pattern or "bisect",
                metric or "sum_max_cong",
                order,
                group,
                first,
                ranks,
                runs,
                seed,
            ),
            as_json,
        )
