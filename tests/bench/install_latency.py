"""The latency from a request to updated switches, for two sets of routes that alternate."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.routes_file import write_routes_file
from sar_agent.install.plan import make_plan
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.opensm.plugin_client import PluginClient, PluginStatus
from sar_agent.routing import Options, load_engine
from sar_lab.live.generated import ibsim_for
from tests.bench.opensm_on_ibsim import opensm
from tests.bench.table import Table, goal
from tests.bench.timing import Times

DEFAULT = ("xgft:3;12,12,12;1,12,12",)
FULL = ("xgft:3;18,18,36;1,18,18",)
ROUNDS = 6


def tables(full: bool) -> Iterator[Table]:
    """A table for each fabric."""
    for spec in DEFAULT + (FULL if full else ()):
        yield _latency(spec)


def _latency(spec: str) -> Table:
    fabric = load_fabric(spec)
    engine = load_engine("sar")
    mixes = [synthetic_mix(fabric, seed) for seed in (1, 2)]
    plans = [make_plan(1, fabric, mix, engine.route(fabric, mix, Options())) for mix in mixes]
    files = [plan.routes_file for plan in plans]
    writing = Times()
    asked: dict[str, Times] = {"load": Times(), "SIGUSR2": Times()}
    blocks: dict[str, list[int]] = {"load": [], "SIGUSR2": []}
    with ibsim_for(fabric) as ibsim, opensm(ibsim, fabric, "sar,minhop", 600) as manager:
        bridge = PluginClient(manager.socket_path)
        for generation in range(1, 4 * ROUNDS + 1):
            way = "load" if generation % 4 < 2 else "SIGUSR2"
            with writing.one():
                write_routes_file(
                    manager.next_path, replace(files[generation % 2], generation=generation)
                )
            before = bridge.status().lft_blocks_confirmed
            start = time.perf_counter()
            if way == "load":
                bridge.load(generation, None)
            else:
                bridge.signal_reload(manager.pid)
                while not in_force(bridge.status(), generation):
                    time.sleep(0.005)
            taken = time.perf_counter() - start
            if generation > 1:  # the first replaces another engine's tables
                asked[way].append(taken)
                blocks[way].append(bridge.status().lft_blocks_confirmed - before)
    changed = plans[0].routes.entries_changed(plans[1].routes)
    table = Table(
        f"Signal to fabric updated, {fabric.terminals:,} hosts, {fabric.switches:,} switches",
        ("asked by", "in force and confirmed, s", "LFT blocks sent", "runs"),
        f"`{spec}`: sar's routes for `mix:1` and `mix:2` alternately ({changed:,} of "
        f"{files[0].forwarding.size:,} entries differ), from the request to the answer (`load`) or "
        "to a status with this generation and no unconfirmed switch (SIGUSR2). Writing the file "
        f"before (with fsync) took {writing.show()} s, which is not included.",
    )
    for way, times in asked.items():
        sent = sorted(set(blocks[way]))
        shown = f"{sent[0]:,}" if len(sent) == 1 else f"{sent[0]:,} … {sent[-1]:,}"
        table.add(way, times.show(), shown, str(len(times)))
        if spec in DEFAULT:
            table.goals.append(goal(f"slowest by {way}", max(times), 1, "s"))
    return table


def in_force(status: PluginStatus, generation: int) -> bool:
    """Whether the generation is installed on every switch."""
    return status.generation_in_force == generation and status.unconfirmed_switches == 0
