"""Which traffic should routes expect? Collectives of today's programs, on rails and on trees.

Each job runs the same collective, with a barrier after each step, on hosts in Slurm's rank order:

    NCCL ring      each rail: port k of a host sends to port k of the next host (a pipelined
                   all-reduce is this step again and again)
    NCCL trees     each rail: the two complementary trees of NCCL, up and down at the same time
    MPI ring       rank i sends to rank i + 1
    MPI pairwise   N - 1 steps: in step k rank i sends to rank i + k mod N (all-to-all)
    recursive      ⌊log2 N⌋ steps: in step k rank i exchanges with rank i xor 2^k
    halo           each rank sends to its six neighbours in a grid that is closed in itself

Routes are made for all pairs of a job, as the agent makes them, or for all pairs of each rail. Keys
are one for each step (NRK), with requests that take no time and as many LIDs as they need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sar_agent.demand.endpoints import multi_switch_mix
from sar_agent.demand.rails import rails_of
from sar_agent.demand.rank_order import ranks_of
from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.model import I32
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing import Options, load_engine
from sar_lab.fluid.flow_steps import Flows, job_ends
from sar_lab.research.packets import packet_times
from sar_lab.research.packets.adaptive_groups import minimal_groups, table_groups
from sar_lab.research.packets.packet_model import adaptive_times
from sar_lab.research.papers.claims import more, times_as_much
from sar_lab.research.papers.measured import by_key, measured
from sar_lab.research.papers.outcome import Outcome, ResultTable
from sar_lab.research.peers.key_flows import (
    MODEL,
    key_links,
    segment_seconds,
    steps_of_jobs,
)  # fmt: skip
from sar_lab.research.statistics import median_of

SEGMENTS = 300
"""What the busiest port of a job sends in all steps together."""
HOSTS, RAILS, PODS = 64, 4, 4
JOBS = (16, 12, 8, 8, 6, 4, 4)
"""Hosts of each job, on blocks of two hosts that are drawn at random: 62 of 64."""
ROWS = ("ftree", "dmodc", "sar-plus", "sar-plus, pairs of a rail", "routing keys",
        "adaptive per packet")  # fmt: skip
Steps = list[I32]
"""int32[n, 2] each: ports that send, and ports that receive."""


def rail_fabric(spines: int) -> Fabric:
    """64 hosts with 4 ports in 4 pods, each with a leaf switch for each rail; 16 ports a leaf."""
    builder = FabricBuilder(f"rails, {16 // spines}:1")
    for s in range(PODS * RAILS):
        builder.add_switch(0x5000 + s, f"leaf{s}", 64)
    for h in range(HOSTS):
        for k in range(RAILS):
            leaf, guid = h * PODS // HOSTS * RAILS + k, 0xA000 + 16 * h + k
            builder.add_terminal(
                guid, f"n{h} mlx5_{k}", f"n{h}", leaf, 1 + h % (HOSTS // PODS), node_guid=guid
            )
    for r in range(spines):
        spine = builder.add_switch(0x6000 + r, f"spine{r}", 64)
        for s in range(PODS * RAILS):
            builder.add_link(s, 30 + r, spine, 1 + s)
    return builder.build()


def fabrics() -> dict[str, Fabric]:
    """By name; the last has one port a host."""
    tree = xgft_fabric("xgft:2;16,16;1,8")
    return {"rails, 1:1": rail_fabric(16), "rails, 2:1": rail_fabric(8), "tree, 2:1": tree}


def jobs_of(fabric: Fabric, seed: int) -> JobMix:
    """Jobs on blocks of neighbouring hosts, as a scheduler leaves them after some time."""
    names = list(fabric.hosts)
    block = len(names) // 32
    order = np.random.default_rng(seed).permutation(32)
    jobs, at = [], 0
    for number, size in enumerate(JOBS):
        some = order[at : at + size // 2]
        at += size // 2
        hosts = [name for b in some for name in names[b * block : (b + 1) * block]]
        jobs.append(make_job(str(number), [t for name in hosts for t in fabric.hosts[name]]))
    return JobMix.of(jobs)


def ring(ranks: I32) -> Steps:
    return [np.stack([ranks, np.roll(ranks, -1)], axis=1)]


def trees(ranks: I32) -> Steps:
    """NCCL's double binary tree (`ncclGetDtree`): the second is the first mirrored where the number
    of ranks is even, else moved by one."""
    n = len(ranks)
    pairs = []
    for second in (False, True):
        for i in range(1, n):
            bit = i & -i
            above = i ^ bit | bit << 1
            a, b = i, above if above < n else i ^ bit
            if second:
                a, b = (n - 1 - e if n % 2 == 0 else (e + 1) % n for e in (a, b))
            pairs += [(a, b), (b, a)]
    return [ranks[np.array(pairs)]]


def pairwise(ranks: I32) -> Steps:
    return [np.stack([ranks, np.roll(ranks, -k)], axis=1) for k in range(1, len(ranks))]


def recursive(ranks: I32) -> Steps:
    power = 1 << (len(ranks).bit_length() - 1)
    at = np.arange(power)
    return [
        np.stack([ranks[at], ranks[at ^ (1 << k)]], axis=1) for k in range(power.bit_length() - 1)
    ]


def halo(ranks: I32) -> Steps:
    n = len(ranks)
    x = max(d for d in range(1, n + 1) if n % d == 0 and d**3 <= n)
    y = max(d for d in range(1, n + 1) if (n // x) % d == 0 and d * d <= n // x)
    grid = ranks.reshape(x, y, -1)
    both = [
        np.stack([grid, np.roll(grid, by, axis)], axis=-1).reshape(-1, 2)
        for axis in range(3) if grid.shape[axis] > 1
        for by in ((1, -1) if grid.shape[axis] > 2 else (1,))
    ]  # fmt: skip
    return [np.concatenate(both)]


COLLECTIVES: dict[str, tuple[Callable[[I32], Steps], bool]] = {
    "NCCL ring": (ring, True),
    "NCCL trees": (trees, True),
    "MPI ring": (ring, False),
    "MPI pairwise": (pairwise, False),
    "recursive doubling": (recursive, False),
    "halo": (halo, False),
}
"""Name → its steps for ranks in order, and whether each rail has its own."""


@measured
def times(title: str, seed: int) -> dict[tuple[str, str], float]:
    """(collective, row) → the slowdown of the mean job."""
    fabric = fabrics()[title]
    mix = jobs_of(fabric, seed)
    rails, split = rails_of(fabric), multi_switch_mix(fabric, mix.jobs)
    tables = {
        "ftree": load_engine("ftree").route(fabric, JobMix(()), Options()),
        "dmodc": load_engine("dmodc").route(fabric, JobMix(()), Options()),
        "sar-plus": load_engine("sar-plus").route(fabric, mix, Options()),
    }
    if rails:
        tables[ROWS[3]] = load_engine("sar-plus").route(fabric, split, Options())
    groups = {name: table_groups(fabric, each) for name, each in tables.items()}
    groups[ROWS[5]] = minimal_groups(fabric)
    host = np.array(fabric.terminal_host)
    found: dict[tuple[str, str], float] = {}
    for name, (make, by_rail) in COLLECTIVES.items():
        some = split if by_rail else mix
        owner = [job.id for job in some.jobs]
        steps: list[Steps] = []
        for ranks in np.split(ranks_of(fabric, some), some.offset[1:-1]):
            every = [step[host[step[:, 0]] != host[step[:, 1]]] for step in make(ranks)]
            steps.append([step for step in every if len(step)])
        alone = [
            sum(max(np.bincount(end).max() for end in step.T) for step in each) for each in steps
        ]
        flows = steps_of_jobs(steps, [SEGMENTS / each for each in alone])
        ends = {row: adaptive_times(fabric, each, flows, MODEL, "packet").end
                for row, each in groups.items()}  # fmt: skip
        ends[ROWS[4]] = packet_times(fabric, key_links(fabric, steps, flows), flows, MODEL).end
        for row, end in ends.items():
            found[name, row] = _mean_job(fabric, flows, end, owner)
    return found


def _mean_job(fabric: Fabric, flows: Flows, end: np.ndarray, owner: Sequence[str]) -> float:
    """Divided by what its busiest port needs; a job takes as long as its slowest rail."""
    last = job_ends(flows, end, len(owner))
    jobs: dict[str, float] = {}
    for job, seconds in zip(owner, last, strict=True):
        jobs[job] = max(jobs.get(job, 0.0), float(seconds))
    return float(np.mean(list(jobs.values()))) / (SEGMENTS * segment_seconds(fabric))


def collective_demand(seeds: Sequence[int]) -> Outcome:
    """All collectives and rows on all fabrics."""
    found = {
        (title, *key): each
        for title in fabrics()
        for key, each in by_key(times(title, seed) for seed in seeds).items()
    }
    on_rails = [title for title in fabrics() if title.startswith("rails")]
    claims = [
        more(f"{title}, {name}: for pairs of a rail faster than for all pairs",
             found[title, name, "sar-plus"], found[title, name, ROWS[3]])
        for title in on_rails
        for name, (_, by_rail) in COLLECTIVES.items()
        if by_rail
    ]  # fmt: skip
    tables = []
    for title in fabrics():
        rows = []
        for row in ROWS:
            draws = [found.get((title, name, row)) for name in COLLECTIVES]
            cells = [median_of(each).words() if each else "–" for each in draws]
            whole = [v for each in draws if each for v in each]
            base = [v for name in COLLECTIVES for v in found[title, name, "ftree"]]
            mean = times_as_much(whole, base).words() if whole else "–"
            rows.append([row, *cells, mean])
        tables.append(ResultTable([title, *COLLECTIVES, "all, against ftree"], rows))
    return Outcome(claims, tables=tables)
