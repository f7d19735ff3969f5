"""What `sar-agent place` gains over Slurm's choice of nodes, in simulated packets.

A job of 20 nodes starts beside the jobs of a queue. Slurm's nodes are those that a real slurmctld
with topology/tree gave (`slurm_choices.py`); beside them the search of `place`, by the tables in
force, and "greedy" and "balanced" after P. Mishra, T. Agrawal and P. Malakar, "Communication-aware
job scheduling using SLURM", ICPP Workshops 2020, where all jobs communicate: leaf switches with the
smallest share of busy nodes first, each filled, or each with a power of two. Their *adaptive*
takes the one with the lower cost of an MPI collective, which has no place here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from sar_agent.demand.endpoints import live_part, multi_switch_mix
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import Job, make_job
from sar_agent.reports.placement import Placer
from sar_agent.reports.site_dumps import SiteDumps
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.util.hostlist import expand
from sar_lab.fluid.flow_steps import job_ends
from sar_lab.research.packets.adaptive_groups import minimal_groups, table_groups
from sar_lab.research.packets.packet_model import adaptive_times
from sar_lab.research.papers.claims import Claim, more
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pictures import grouped_bars, legend
from sar_lab.research.peers.adaptive_packets import MODEL, PATTERNS, scaled, unit
from sar_lab.research.peers.slurm_choices import FREE, NODES, QUEUES, RECORDED, SPEC, moment
from sar_lab.research.statistics import median_of

RATIOS = {"1:1": 12, "2:1": 6, "4:1": 3}
"""Hosts to cables up of a leaf switch, and its cables."""
ENGINES = ("ftree", "sar-plus", "adaptive per packet")
RULES = ("Slurm", "place", "greedy", "balanced")
COLOURS = ("#999999", "#4477aa", "#ccbb44", "#66ccee")
SHARE = FREE[-1]
"""Of the nodes are free; of fewer there is hardly a choice."""
NOTICED = 1.02
"""Times as long: less counts as the same."""
Found = dict[tuple[str, str, str], dict[str, tuple[float, float]]]
"""(ratio, engine, pattern) → rule → the job's slowdown, and idle nodes."""


def proposed_placement(seeds: Sequence[int]) -> Outcome:
    """All rules on the queues of these seeds, counted from 0."""
    found = [outcome_of(seed % QUEUES + 1) for seed in seeds]
    cases = list(found[0])
    tables = [_table(found, cases, pattern) for pattern in PATTERNS]
    claims: list[Claim] = []
    for case in cases:
        slurm, ours = ([each[case][rule][0] for each in found] for rule in RULES[:2])
        says = f"{', '.join(case)}: {NOTICED} times as long on Slurm's nodes as on place's"
        claims.append(more(says, slurm, ours, least=NOTICED))

    def draw(figure: Figure) -> None:
        for axes, pattern in zip(figure.subplots(1, len(PATTERNS)), PATTERNS, strict=True):
            rows = [case for case in cases if case[2] == pattern]
            names = [f"{row[0]}\n{row[1]}".replace("adaptive ", "adaptive\n") for row in rows]
            medians = {
                rule: [median_of([each[row][rule][0] for each in found]).value for row in rows]
                for rule in RULES
            }
            grouped_bars(axes, names, medians, COLOURS, fontsize=6)
            axes.axhline(1, color="black", linewidth=0.8)
            axes.set(title=pattern, ylabel=f"slowdown of the job of {NODES} nodes, median")
        legend(figure, "outside lower center", ncols=4, fontsize=8)

    return Outcome(claims, tables=tables, draw=draw)


@measured
def outcome_of(seed: int) -> Found:
    """All cases of one queue."""
    recorded = json.loads(RECORDED.read_text())
    found: Found = {}
    for ratio, cables in RATIOS.items():
        fabric = load_fabric(SPEC.format(cables))
        running = [
            _job(fabric, str(n), hosts) for n, hosts in enumerate(moment(fabric, seed, SHARE), 1)
        ]
        slurm = list(expand(recorded[str(SHARE)][str(seed)]))
        chosen = {name: choices(fabric, running, slurm, name) for name in ENGINES[:2]}
        for engine in ENGINES:
            for rule, hosts in chosen.get(engine, chosen["ftree"]).items():
                times = _times(fabric, [*running, _job(fabric, "new", hosts)], engine)
                for pattern, each in times.items():
                    found.setdefault((ratio, engine, pattern), {})[rule] = each
    return found


def choices(
    fabric: Fabric, running: list[Job], slurm: list[str], engine: str
) -> dict[str, list[str]]:
    """The nodes by each of `RULES`."""
    mix = multi_switch_mix(fabric, running)
    routes = load_engine(engine).route(fabric, mix, Options())
    busy = {fabric.terminal_host[t] for job in running for t in job.terminals}
    free = [host for host in fabric.job_ports if host not in busy]
    placer = Placer(SiteDumps(fabric, (), mix, routes), free)
    best = min([placer.candidate(slurm), *placer.candidates(len(slurm))])
    emptiest = sorted(placer.free.values(), key=len, reverse=True)
    return {
        "Slurm": slurm,
        "place": list(best.hosts),
        "greedy": _filled(emptiest, len(slurm), powers=False),
        "balanced": _filled(emptiest, len(slurm), powers=True),
    }


def _filled(leaves: list[list[str]], count: int, powers: bool) -> list[str]:
    """Nodes of these leaf switches in turn: all that are free, or the largest power of two; what
    is still missing is taken in the same order."""
    taken: list[str] = []
    for hosts in leaves:
        room = min(len(hosts), count - len(taken))
        taken += hosts[: 1 << room.bit_length() - 1 if powers and room else room]
    rest = [host for hosts in leaves for host in hosts if host not in taken]
    return taken + rest[: count - len(taken)]


def _job(fabric: Fabric, name: str, hosts: list[str]) -> Job:
    return make_job(name, (t for host in hosts for t in fabric.job_ports[host]))


def _times(fabric: Fabric, jobs: list[Job], engine: str) -> dict[str, tuple[float, float]]:
    """pattern → (slowdown of the last job, idle nodes of all)."""
    mix = JobMix(tuple(kept for job in jobs if (kept := live_part(fabric, job))))
    if engine in ENGINES[:2]:
        routes: Routes = load_engine(engine).route(fabric, mix, Options())
        groups = table_groups(fabric, routes)
    else:
        groups = minimal_groups(fabric)
    found = {}
    for pattern, make in PATTERNS.items():
        flows = scaled(fabric, make(fabric, mix))
        end = adaptive_times(fabric, groups, flows, MODEL, "packet").end
        slowdown = np.maximum(1.0, job_ends(flows, end, len(mix.jobs)) / unit(fabric))
        sizes = np.array([len(job.terminals) for job in mix.jobs])
        own = float(slowdown[-1]) if mix.jobs[-1].id == jobs[-1].id else 1.0
        found[pattern] = own, float((sizes * (1 - 1 / slowdown)).sum())
    return found


def _table(
    found: Sequence[Found], cases: Sequence[tuple[str, str, str]], pattern: str
) -> ResultTable:
    rows = []
    for case in cases:
        if case[2] != pattern:
            continue
        own = {rule: np.array([each[case][rule][0] for each in found]) for rule in RULES}
        idle = {rule: np.array([each[case][rule][1] for each in found]) for rule in RULES}
        gain = own["Slurm"] / own["place"]
        rows.append(
            [
                f"{case[0]}, {case[1]}",
                *(median_of(own[rule]).words() for rule in RULES),
                f"{int((gain > NOTICED).sum())}, {int((gain < 1 / NOTICED).sum())}",
                median_of(idle["Slurm"] - idle["place"]).words(1),
                f"{int((idle['place'] > idle['Slurm'] + 0.5).sum())}",
            ]
        )
    head = [
        pattern,
        *RULES,
        "`place` faster, slower (queues)",
        "idle nodes fewer than with Slurm's",
        "more idle by 0.5 (queues)",
    ]
    return ResultTable(head, rows)
