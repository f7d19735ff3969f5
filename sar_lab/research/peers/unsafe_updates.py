"""How often is it unsafe to install new routes at once, and what does the agent's plan make of it?

A job ends and another of the same size starts elsewhere. New tables replace the old ones switch by
switch, in no order, while packets travel. `examine` says for each such change whether some mixture
of both tables can send packets in a circle, lose them or close a credit loop. This is asked for
tables that are computed from scratch for each job mix, as SAR in print (`sar`), and for the agent's
plans, which keep old entries where they are as good (`sar-plus`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from sar_agent.agent.planner import Planner
from sar_agent.check.transition import Way, examine
from sar_agent.config.model import AgentConfig, Config
from sar_agent.demand.endpoints import multi_switch_mix, synthetic_mix
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.install.plan import make_plan
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing import Options, load_engine
from sar_agent.routing.lanes.routed_engine import routed
from sar_lab.research.papers.claims import order
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pictures import legend

CHANGES = 12
MOST_LANES = 8
"""By path: networks with circles need lanes."""
TREE = "xgft:3;6,6,6;1,6,6"
CASES = (
    (TREE, 0), (TREE, 1), (TREE, 5), (TREE, 10), ("hyperx:4x4,hosts=4", 0),
    ("dragonfly:a=4,p=2,h=2", 0), ("torus:3x3x3,hosts=4", 5),
)  # fmt: skip
"""Spec, per cent of dead cables."""
WAYS = (Way.SAME, Way.DIRECT, Way.STAGED, Way.FITTED, Way.UNPROVED, Way.UNSAFE)
COLOURS = ("#dddddd", "#228833", "#66ccee", "#4477aa", "#ccbb44", "#ee6677")
HOW = ("sar, from scratch", "sar-plus, planned")
Counts = dict[str, dict[str, Counter[Way]]]
"""Case → `HOW` → how often."""


def unsafe_updates(seeds: Sequence[int]) -> Outcome:
    """All fabrics and seeds."""
    counts: Counts = {}
    for spec, dead in CASES:
        both: dict[str, Counter[Way]] = {how: Counter() for how in HOW}
        for seed in seeds:
            for how, ways in changes_of(spec, dead, seed).items():
                both[how].update(map(Way, ways))
        counts[case_name(spec, dead)] = both
    trees = [case_name(spec, dead) for spec, dead in CASES if spec == TREE]
    others = [name for name in counts if name not in trees]
    claims = [
        order(
            "on trees, whole or with up to 10 % of their cables dead, any order is safe",
            all(_at_once(way) == 1 for name in trees for way in counts[name].values()),
        ),
        order(
            "on networks with circles, most changes are unsafe in some order",
            all(_at_once(counts[name][HOW[0]]) < 0.5 for name in others),
        ),
        order(
            "the agent's plans are safe in any order at least as often, on every fabric",
            all(_at_once(each[HOW[1]]) >= _at_once(each[HOW[0]]) for each in counts.values()),
        ),
        order(
            "every plan of the agent has a proved way",
            all(each[HOW[1]][bad] == 0 for each in counts.values() for bad in WAYS[4:]),
        ),
    ]

    def draw(figure: Figure) -> None:
        for axes, how in zip(figure.subplots(1, 2, sharey=True), HOW, strict=True):
            left = np.zeros(len(counts))
            for way, colour in zip(WAYS, COLOURS, strict=True):
                share = np.array([_share(each[how], way) for each in counts.values()])
                axes.barh(range(len(counts)), share, left=left, color=colour, label=way.value)
                left += share
            axes.set(title=how, xlabel="share of job changes", xlim=(0, 1))
            axes.set_yticks(range(len(counts)), list(counts), fontsize=8)
        figure.axes[0].invert_yaxis()
        legend(figure, "outside lower center", ncols=6)
        figure.suptitle(f"n = {len(seeds) * CHANGES} job changes a bar", fontsize=9)

    shown = [(how, way) for how in HOW for way in WAYS if way is not Way.SAME]
    table = ResultTable(
        ["fabric", *(f"{how}: {way.value}" for how, way in shown)],
        [
            [name, *(f"{_share(each[how], way):.0%}" for how, way in shown)]
            for name, each in counts.items()
        ],
    )
    return Outcome(claims, tables=[table], draw=draw)


@measured
def changes_of(spec: str, dead: int, seed: int) -> dict[str, list[str]]:
    """`HOW` → the way of each change."""
    fabric = less_cables(load_fabric(spec), dead, seed)
    found = (from_scratch(fabric, seed), planned(fabric, seed))
    return {how: [way.value for way in ways] for how, ways in zip(HOW, found, strict=True)}


def case_name(spec: str, dead: int) -> str:
    """The fabric, and how much of it is dead."""
    return f"{spec}, {dead} % dead" if dead else spec


def less_cables(whole: Fabric, dead: int, seed: int) -> Fabric:
    """The fabric without `dead` per cent of its cables between switches."""
    cables = np.flatnonzero(np.arange(whole.channels) < whole.channel_reverse)
    random = np.random.default_rng(seed)
    return whole.with_links_down(random.choice(cables, round(len(cables) * dead / 100), False))


def job_changes(fabric: Fabric, seed: int) -> Iterator[JobMix]:
    """The mix at first, then after each change: one job has ended, and one of as many hosts has
    started on free hosts, which may be the same."""
    random = np.random.default_rng(seed)
    jobs = list(synthetic_mix(fabric, seed).jobs)
    for number in range(1_000_000):
        yield multi_switch_mix(fabric, jobs)
        ended = jobs.pop(int(random.integers(len(jobs))))
        busy = np.zeros(fabric.terminals, np.bool_)
        for job in jobs:
            busy[job.terminals] = True
        free = np.flatnonzero(~busy & fabric.is_host_port)
        hosts = random.choice(free, len(ended.terminals), False)
        jobs.append(make_job(f"new-{number}", hosts.tolist()))


def from_scratch(fabric: Fabric, seed: int) -> Iterator[Way]:
    """Algorithm 1, computed for each mix from the beginning."""
    options = Options(hosts_use_path_records=True, max_lanes=MOST_LANES)
    before = None
    for mix in islice(job_changes(fabric, seed), CHANGES + 1):
        after = routed(load_engine("sar"), fabric, mix, options)
        if before is not None:
            yield examine(fabric, before, after).way
        before = after


def planned(fabric: Fabric, seed: int) -> Iterator[Way]:
    """The agent's planner; what is in force afterwards is the last table that may be installed."""
    agent = AgentConfig(reoptimise_seconds=0, hosts_use_path_records=True, max_lanes=MOST_LANES)
    config = Config(agent=agent)
    planner = Planner(config, load_engine("sar-plus"))
    mixes = job_changes(fabric, seed)
    in_force = planner.plan(1, fabric, next(mixes))
    for mix in islice(mixes, CHANGES):
        plan = planner.plan(1, fabric, mix, in_force)
        found = examine(fabric, in_force.routes, plan.routes)
        yield found.way
        if found.stages and found.proved:
            last = found.stages[-1]
            try:
                same = last is plan.routes
                in_force = plan if same else make_plan(1, fabric, mix, last, before=plan)
            except SarError:
                continue


def _at_once(ways: Counter[Way]) -> float:
    return _share(ways, Way.SAME) + _share(ways, Way.DIRECT)


def _share(ways: Counter[Way], way: Way) -> float:
    return ways[way] / ways.total()
