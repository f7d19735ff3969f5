"""LNMP's layers of longer paths beside one table of shortest paths, on a Slim Fly.

Most pairs of switches have a single shortest path there. So one table sends all that the hosts of a
switch have for those of another switch over one cable; `lnmp` gives every port several LIDs, and
the tables of most lead around. Here a message is cut into as many equal parts as the port has LIDs,
which are sent at once and to one LID each.

Three patterns: the hosts of each *switch* send to those of another one, each *host* to one other
host, and the hosts of *jobs* all to all. Links are shared as in the fluid model (`sar_lab/fluid/`),
which knows no lanes, so the lanes that longer paths need cost nothing. The order in which parts
arrive costs nothing, either.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import Options, load_engine
from sar_agent.routing.routes import Routes
from sar_lab.fluid.flow_events import end_times
from sar_lab.fluid.flow_links import F64
from sar_lab.fluid.flow_paths import reroute, routed_links
from sar_lab.fluid.flow_steps import Flows, flows_of_steps, job_ends, seconds_alone
from sar_lab.fluid.job_patterns import all_to_all
from sar_lab.research.engines.lnmp import LONGEST
from sar_lab.research.papers.measured import by_key, measured
from sar_lab.research.papers.outcome import Figure, Outcome, median_table
from sar_lab.research.papers.pictures import grouped_bars
from sar_lab.research.papers.worded_claims import judged
from sar_lab.research.statistics import median_of

SPEC = "slimfly:5,hosts=4"
DFSSSP, PLUS, TWO, FOUR = "dfsssp", "sar-plus", "lnmp, 2 LIDs", "lnmp, 4 LIDs"
ROWS = {DFSSSP: 0, PLUS: 0, TWO: 1, FOUR: 2, "lnmp, 8 LIDs": 3}
"""Row → LMC."""
COLOURS = ("#999999", "#4477aa", "#ccbb44", "#ee6677", "#aa3377")
SWITCHES, HOSTS, JOBS = "switch to switch", "host to host", "jobs, all to all"
PATTERNS = (SWITCHES, HOSTS, JOBS)
Slowdowns = dict[str, dict[str, list[float]]]
"""Pattern → row → the mean slowdown of messages or jobs, one for each seed."""


def layered_paths(seeds: Sequence[int]) -> Outcome:
    """All rows and patterns."""
    found: Slowdowns = {pattern: {} for pattern in PATTERNS}
    for (pattern, row), each in by_key(slowdowns(SPEC, seed) for seed in seeds).items():
        found[pattern][row] = each
    numbers = {p: {row: [draws] for row, draws in rows.items()} for p, rows in found.items()}
    claims = [
        judged(f"{pattern}: {FOUR} {relation} {other}", numbers[pattern])
        for pattern, relation, other in (
            (SWITCHES, "faster than", DFSSSP),
            (SWITCHES, "faster than", TWO),
            (HOSTS, "faster than", DFSSSP),
            (JOBS, "slower than", DFSSSP),
            (JOBS, "slower than", PLUS),
        )
    ]
    table = median_table("mean slowdown", found, {row: row for row in ROWS}, lambda r, of: of[r])
    return Outcome(claims, [table], lambda figure: _draw(figure, found))


@measured
def slowdowns(spec: str, seed: int) -> dict[tuple[str, str], float]:
    """The mean slowdown by pattern and row."""
    fabric = load_fabric(spec)
    mix = synthetic_mix(fabric, seed)
    patterns = {
        SWITCHES: messages(fabric, switch_partners(fabric, seed)),
        HOSTS: messages(fabric, host_partners(fabric, seed)),
        JOBS: all_to_all(fabric, mix),
    }
    found = {}
    for row, lmc in ROWS.items():
        engine = load_engine(row.partition(",")[0])
        routes = engine.route(fabric, mix, Options(lmc=lmc))
        for pattern, flows in patterns.items():
            end = arrival(fabric, routes, flows)
            found[pattern, row] = _slowdown(fabric, flows, end)
    return found


def switch_partners(fabric: Fabric, seed: int) -> I32:
    """int32[T, 2]: the hosts of each switch to those of another, drawn such that each switch has
    one that sends to it."""
    order = np.random.default_rng([seed, 1]).permutation(fabric.leaves)
    to = dict(zip(order.tolist(), np.roll(order, 1).tolist(), strict=True))
    hosts = [np.flatnonzero(fabric.terminal_switch == leaf) for leaf in range(fabric.switches)]
    pairs = [np.stack([hosts[a], hosts[b]], axis=1) for a, b in to.items()]
    return np.concatenate(pairs).astype(np.int32)


def host_partners(fabric: Fabric, seed: int) -> I32:
    """int32[T, 2]: each host to another, drawn such that each has one that sends to it."""
    order = np.random.default_rng([seed, 2]).permutation(fabric.terminals).astype(np.int32)
    return np.stack([order, np.roll(order, 1)], axis=1)


def messages(fabric: Fabric, pairs: I32) -> Flows:
    """One message for each pair int32[F, 2], all at once; one second on a host's own link."""
    flows = flows_of_steps([pairs], fabric.terminal_rate[pairs[:, 0]])
    return flows._replace(job=np.arange(len(pairs), dtype=np.uint32))


def arrival(fabric: Fabric, routes: Routes, flows: Flows) -> F64:
    """float64[F], seconds: when the last part of each message has arrived."""
    lids = len(routes.egress)
    parts = Flows(
        np.repeat(flows.source, lids),
        np.repeat(flows.destination, lids),
        np.repeat(flows.size / lids, lids),
        np.repeat(flows.job, lids),
        np.repeat(flows.step, lids),
        flows.last,
        flows.wait,
    )
    links = routed_links(fabric, routes, parts, room=LONGEST + 2)
    for offset in range(1, lids):
        some = np.arange(offset, len(parts.size), lids, dtype=np.uint32)
        reroute(fabric, routes.egress[offset], links, parts, some, routes.engine)
    last: F64 = end_times(links, parts).reshape(-1, lids).max(axis=1)
    return last


def _slowdown(fabric: Fabric, flows: Flows, end: F64) -> float:
    """Mean over jobs (each message of the first two patterns is one)."""
    jobs = int(flows.job.max()) + 1
    last, alone = job_ends(flows, end, jobs), seconds_alone(fabric, flows, flows.job, jobs)
    return float(np.mean(last[last > 0] / alone[last > 0]))


def _draw(figure: Figure, found: Slowdowns) -> None:
    axes = figure.subplots()
    rows = {row: [median_of(found[pattern][row]) for pattern in PATTERNS] for row in ROWS}
    grouped_bars(axes, PATTERNS, rows, COLOURS)
    axes.axhline(1, color="black", lw=0.8)
    axes.set_ylabel("mean slowdown against a crossbar")
    figure.legend(loc="outside upper center", ncols=len(ROWS), fontsize="small")
    draws = len(found[SWITCHES][DFSSSP])
    figure.supxlabel(f"n = {draws} draws; medians, 95 % intervals", fontsize="small")
