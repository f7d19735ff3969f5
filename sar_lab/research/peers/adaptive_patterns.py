"""Adaptive routing per packet where it is tested hardest: incast, steps on a grid, and messages
that come at an offered load.

*Incast*: in every second job all hosts send to the first one, the other jobs exchange all with all
at once; slowdowns are those of the other jobs, which the incast disturbs. *Grid*: the hosts of a
job stand in a grid and send to their neighbours, one after the other, with a barrier after each
step; here, a routing key for each neighbour stands beside. *Load*: each host sends messages to one
other host of its job, at random moments.

A switch sees only its own queues, so it can choose a link up, and hardly one down: in a tree one
link leads down to a leaf switch from each root. The share of waiting for such links is what is left
to the choice of a root, which is made before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import Options, load_engine
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.keys import choose_shift, key_tree, make_key
from sar_agent.routing.updn import tree_order
from sar_lab.fluid.flow_links import F64, FlowLinks, flow_links_of
from sar_lab.fluid.flow_paths import link_rates
from sar_lab.fluid.flow_steps import Flows, flows_of_steps, job_ends
from sar_lab.research.packets import Choice, PacketModel, PacketRun, adaptive_times, packet_times
from sar_lab.research.packets.adaptive_groups import job_groups, minimal_groups, table_groups
from sar_lab.research.packets.packet_events import PortGroups
from sar_lab.research.papers.claims import Claim, times_as_much
from sar_lab.research.papers.measured import by_key, measured
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pictures import band, bars
from sar_lab.research.papers.worded_claims import PLAIN, judged
from sar_lab.research.statistics import median_of
from sar_lab.research.trace.groups import all_pairs

SPEC = "xgft:2;12,24;1,12"
MODEL = PacketModel()
SEGMENTS = 480
"""What a host sends in a job's exchange or program; what the first host receives in an incast."""
STEPS = 12
"""Of a program on a grid; each host has up to four neighbours."""
MESSAGE = 8
"""Segments of a message of the offered load."""
WINDOW = 480
"""Segment times in which messages begin."""
LOADS = (0.2, 0.4, 0.6, 0.8)
"""What a host sends, as a share of its link."""
FTREE, PLUS, FLOW, PACKET = "ftree", "sar-plus", "adaptive per flow", "adaptive per packet"
WITHIN, KEYS = "adaptive in sar-plus's ports", "routing keys"
ROWS: tuple[tuple[str, Choice], ...] = (
    (FTREE, "packet"), (PLUS, "packet"), (FLOW, "flow"), (PACKET, "packet"), (WITHIN, "packet"),
)  # fmt: skip
COLOURS = {FTREE: "#228833", PLUS: "#4477aa", FLOW: "#ccbb44", PACKET: "#ee6677",
           WITHIN: "#aa3377", KEYS: "#000000"}  # fmt: skip
INCAST, GRID = "others beside incast", "steps on a grid"


@dataclass(frozen=True)
class PatternResult:
    """One pattern under one row of one mix."""

    typical: float
    """The mean slowdown of jobs, or the median one of messages under a load."""
    worst: float
    """The slowdown of the slowest job, or the 99th percentile of messages."""
    down: float
    """The share of waiting in switches that was for links down to another switch; not a number for
    routing keys, whose simulator does not record it."""
    overtaken: float
    """The share of segments that arrived after a later one of their message."""


Results = dict[str, dict[str, list[PatternResult]]]
"""Pattern → row → one for each seed; routing keys on a grid only."""
Rows = dict[str, list[list[float]]]
"""Row → one place with its draws."""


TITLES = {
    "typical": "slowdown: mean job, median message",
    "worst": "slowdown: slowest job, 99th percentile",
    "down": "share of waiting for links down",
    "overtaken": "share of segments overtaken",
}


def load_name(load: float) -> str:
    return f"load {load:g}"


PATTERNS = (INCAST, GRID, *map(load_name, LOADS))


def adaptive_patterns(seeds: Sequence[int]) -> Outcome:
    """All patterns and rows on the mixes of the seeds."""
    results: Results = {pattern: {} for pattern in PATTERNS}
    for (pattern, row), draws in by_key(patterns_of(SPEC, seed) for seed in seeds).items():
        results[pattern][row] = draws
    tables = []
    for of, title in TITLES.items():
        cells = {row: [[getattr(r, of) for r in results[p].get(row, [])] for p in PATTERNS]
                 for row in COLOURS}  # fmt: skip
        rows = [[row, *map(_words, each)] for row, each in cells.items()]
        tables.append(ResultTable([title, *PATTERNS], rows))
    return Outcome(claims_of(results), tables=tables, draw=lambda figure: _draw(figure, results))


def claims_of(results: Results) -> list[Claim]:
    """The statements, each judged by its words on the same mixes."""
    times, worst, down = (_by_row(results, of) for of in ("typical", "worst", "down"))
    light, heavy = load_name(LOADS[0]), load_name(LOADS[-1])
    return [
        _paired(INCAST, PACKET, "slower than", PLUS, times[INCAST]),
        _paired(GRID, PACKET, "faster than", PLUS, times[GRID]),
        _paired(GRID, WITHIN, "slower than", PACKET, times[GRID]),
        _paired(GRID, KEYS, "faster than", PLUS, times[GRID]),
        _paired(GRID, PACKET, "faster than", KEYS, times[GRID]),
        _paired(f"{light}, 99th percentile", PACKET, "faster than", PLUS, worst[light]),
        _paired(f"{heavy}, 99th percentile", PACKET, "faster than", PLUS, worst[heavy]),
        _paired(f"{heavy}, 99th percentile", FLOW, "slower than", PACKET, worst[heavy]),
        _paired(f"{heavy}, waiting for links down", PACKET, "above", PLUS, down[heavy]),
        judged(f"{heavy}, waiting for links down: {FTREE} below {PLUS}", down[heavy], PLAIN),
    ]


def _paired(where: str, one: str, relation: str, other: str, numbers: Rows) -> Claim:
    """Ours: how many times `other` the draws of `one` are."""
    ours = f"{times_as_much(numbers[one][0], numbers[other][0]).words()} times"
    return judged(f"{where}: {one} {relation} {other}", numbers, ours=ours)


@measured
def patterns_of(spec: str, seed: int) -> dict[tuple[str, str], PatternResult]:
    """All patterns of a mix under all rows."""
    fabric = load_fabric(spec)
    mix = synthetic_mix(fabric, seed)
    tables = {name: load_engine(name).route(fabric, mix, Options()) for name in (FTREE, PLUS)}
    minimal = minimal_groups(fabric)
    groups: dict[str, PortGroups] = {name: table_groups(fabric, r) for name, r in tables.items()}
    groups |= {FLOW: minimal, PACKET: minimal, WITHIN: job_groups(fabric, tables[PLUS], mix)}
    flows = {INCAST: incast(fabric, mix), GRID: grid(fabric, mix)}
    flows |= {load_name(load): offered(fabric, mix, load, seed) for load in LOADS}
    found = {}
    for pattern, some in flows.items():
        for row, choice in ROWS:
            played = adaptive_times(fabric, groups[row], some, MODEL, choice)
            down = share_down(fabric, played)
            found[pattern, row] = _result(
                fabric, pattern, some, played.end, down, float(played.overtaken.sum())
            )
    steps = flows[GRID]
    end = packet_times(fabric, key_links(fabric, grid_phases(mix), steps), steps, MODEL).end
    found[GRID, KEYS] = _result(fabric, GRID, steps, end, np.nan, 0)
    return found


def incast(fabric: Fabric, mix: JobMix) -> Flows:
    """Jobs 0, 2, …: all hosts send to the first one; the others: all to all. One step each."""
    hosts = [job.terminals for job in mix.jobs]
    steps = [
        [pairs_to_first(some) if i % 2 == 0 else some[all_pairs(len(some))]]
        for i, some in enumerate(hosts)
    ]
    return steps_of_jobs(steps, [SEGMENTS / (len(some) - 1) for some in hosts])


def pairs_to_first(hosts: I32) -> I32:
    """int32[N - 1, 2]: each other host to the first."""
    return np.stack([hosts[1:], np.full(len(hosts) - 1, hosts[0], np.int32)], axis=1)


def grid_phases(mix: JobMix) -> list[list[I32]]:
    """For each job, int32[N, 2] for each neighbour in its grid, which has no edge: the last column
    stands beside the first. Hosts fill it row by row in random order."""
    random = np.random.default_rng(len(mix.jobs))
    phases = []
    for job in mix.jobs:
        hosts = random.permutation(job.terminals).astype(np.int32)
        wide = max(w for w in range(1, len(hosts) + 1) if w * w <= len(hosts))
        shifts = sorted({1, len(hosts) - 1, wide, len(hosts) - wide} - {0, len(hosts)})
        phases.append([np.stack([hosts, np.roll(hosts, -k)], axis=1) for k in shifts])
    return phases


def grid(fabric: Fabric, mix: JobMix) -> Flows:
    """`STEPS` exchanges of each job, to one neighbour each, in turns."""
    steps = [[each[k % len(each)] for k in range(STEPS)] for each in grid_phases(mix)]
    return steps_of_jobs(steps, [SEGMENTS / STEPS] * len(steps))


def key_links(fabric: Fabric, jobs: Sequence[Sequence[I32]], flows: Flows) -> FlowLinks:
    """The links of messages with a routing key for each phase of each job, made in the order of
    jobs, and shifted (NRK) for what the keys before use."""
    tree = key_tree(fabric)
    load = np.zeros(fabric.channels, np.int64)
    ways: list[dict[tuple[int, int], list[int]]] = []
    for phases in jobs:
        most = np.zeros(fabric.channels, np.int64)
        ways.append({})
        for phase in phases:
            key = make_key(tree, [(phase[:, 0].copy(), phase[:, 1].copy())])
            shift = choose_shift(key, load)
            most = np.maximum(most, shift.own)
            for a, b, way in zip(key.source, key.destination, shift.channels, strict=True):
                ways[-1][int(a), int(b)] = [int(c) for c in way if c >= 0]
        load += most
    first, last = fabric.channels, fabric.channels + fabric.terminals
    path, link = [0], []
    for a, b, job in zip(flows.source, flows.destination, flows.job, strict=True):
        link += [first + int(a), *ways[job].get((int(a), int(b)), []), last + int(b)]
        path.append(len(link))
    ends = np.array(path, np.uint32)
    return flow_links_of(link_rates(fabric), ends, ends[1:].copy(), np.array(link, np.uint32))


def offered(fabric: Fabric, mix: JobMix, load: float, seed: int) -> Flows:
    """Messages of `MESSAGE` segments, each host's to one partner of its own in its job, so that no
    receiver gets more than a link's worth."""
    random = np.random.default_rng([seed, round(100 * load)])
    pairs = []
    for job in mix.jobs:
        hosts = random.permutation(job.terminals)
        partner = np.roll(hosts, 1)
        count = random.poisson(load * WINDOW / MESSAGE, len(hosts))
        pairs.append(np.stack([np.repeat(hosts, count), np.repeat(partner, count)], axis=1))
    ends = np.concatenate(pairs)
    ends = ends[random.permutation(len(ends))]
    return flows_of_steps(
        list(ends[:, None, :]),
        MESSAGE * segment_gbit(),
        job=np.arange(len(ends)),
        last=True,
        wait=np.sort(random.uniform(0, WINDOW * segment_seconds(fabric), len(ends))),
    )


def segment_gbit() -> float:
    return MODEL.segment_bytes * 8e-9


def segment_seconds(fabric: Fabric) -> float:
    """The time of a segment on a host's own link."""
    return segment_gbit() / float(fabric.terminal_rate.min())


def steps_of_jobs(jobs: Sequence[Sequence[I32]], segments: Sequence[float]) -> Flows:
    """The steps of all jobs, and the segments of each message of a job, which may be parts."""
    job = np.repeat(np.arange(len(jobs)), [len(steps) for steps in jobs])
    flows = flows_of_steps(
        [step for steps in jobs for step in steps],
        1.0,
        job=job,
        last=np.append(job[1:] != job[:-1], True),
    )
    return flows._replace(size=np.array(segments)[flows.job] * segment_gbit())


def _result(
    fabric: Fabric, pattern: str, flows: Flows, end: F64, down: float, overtaken: float
) -> PatternResult:
    jobs = int(flows.job.max()) + 1
    if pattern in (INCAST, GRID):
        slowdown = job_ends(flows, end, jobs) / (SEGMENTS * segment_seconds(fabric))
        if pattern == INCAST:
            slowdown = slowdown[1::2]
        typical, worst = float(slowdown.mean()), float(slowdown.max())
    else:
        slowdown = (end - flows.wait) / (MESSAGE * segment_seconds(fabric))
        typical, worst = (float(p) for p in np.percentile(slowdown, [50, 99]))
    sent = flows.size.sum() / segment_gbit()
    return PatternResult(typical, worst, down, overtaken / float(sent))


def share_down(fabric: Fabric, played: PacketRun) -> float:
    """Of all waiting in switches, the part for links down to another switch; hosts' own links,
    which no route avoids, are in the whole."""
    down = ~np.asarray(tree_order(fabric, graph_of(fabric)).higher, np.bool_)
    whole = float(played.waited.sum())
    return float(played.waited[: fabric.channels][down].sum()) / whole if whole else 0.0


def _by_row(results: Results, of: str) -> dict[str, Rows]:
    return {
        pattern: {row: [[getattr(r, of) for r in draws]] for row, draws in rows.items()}
        for pattern, rows in results.items()
    }


def _words(draws: Sequence[float]) -> str:
    return median_of(draws).words() if draws and np.isfinite(draws).all() else "–"


def _draw(figure: Figure, results: Results) -> None:
    left, middle, right = figure.subplots(1, 3)
    for place, (row, colour) in enumerate(COLOURS.items()):
        some = [p for p in (INCAST, GRID) if row in results[p]]
        found = [median_of([r.typical for r in results[p][row]]) for p in some]
        at = [PATTERNS.index(p) + (place - 2.5) * 0.15 for p in some]
        bars(left, at, found, 0.14, color=colour, label=row)
        if row == KEYS:
            continue
        for axes, of in ((middle, "worst"), (right, "down")):
            curve = [median_of([getattr(r, of) for r in results[load_name(x)][row]]) for x in LOADS]
            band(axes, LOADS, curve, ".-", color=colour)
    left.axhline(1, color="black", lw=0.8)
    left.set_xticks(range(2), [INCAST, GRID])
    left.set(title="mean job", ylabel="slowdown against a crossbar")
    middle.set(title="messages, 99th percentile", xlabel="offered load", ylabel="slowdown", ylim=1)
    middle.set_yscale("log")
    right.set(title="waiting for links down", xlabel="offered load", ylabel="share of all waiting",
              ylim=(0, 1))  # fmt: skip
    draws = len(results[GRID][PLUS])
    figure.legend(loc="outside upper center", ncols=len(COLOURS), fontsize="small")
    figure.supxlabel(f"n = {draws} mixes of jobs; medians, 95 % intervals", fontsize="small")
