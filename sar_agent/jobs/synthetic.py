"""Synthetic job mixes, for demonstrations and benchmarks: `mix:1`, `mix:1,placed=tree` and
`blocks:30,7,50`.

- `mix:SEED`: a share of all hosts runs jobs of 2 to 64 hosts. Sizes are drawn log-uniformly (small
  jobs are common, as in every published trace) and nodes at random, which is the worst case of
  fat-tree routes.
- `mix:SEED,placed=tree`: a moment of a long queue on nodes that Slurm's topology/tree chooses.
- `blocks:SIZES`: jobs of these sizes, one after the other on consecutive hosts.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric, Kind
from sar_agent.jobs.model import Job, make_job
from sar_agent.jobs.tree_placement import hosts_by_leaf, queue_on_tree
from sar_agent.util.plural import plural

FORMS = ("mix:", "blocks:")
PLACED = "placed=tree"


def jobs_of_spec(spec: str, fabric: Fabric) -> tuple[Job, ...]:
    """All jobs of a spec that begins with one of `FORMS`."""
    kind, _, rest = spec.partition(":")
    try:
        if kind == "blocks":
            return _blocks(spec, fabric, [int(n) for n in rest.split(",")])
        seed, comma, option = rest.partition(",")
        if comma and option != PLACED:
            raise InputError(
                f"{spec!r}: no option of synthetic jobs is {option!r}",
                remedy=f"write mix:{seed},{PLACED}",
            )
        if comma:
            return _jobs_on(fabric, queue_on_tree(fabric, int(seed)))
        return synthetic_jobs(fabric, int(seed))
    except ValueError as error:
        what = "a size" if kind == "blocks" else "the seed"
        example = "blocks:30,7,50" if kind == "blocks" else "mix:1"
        raise InputError(
            f"{spec!r}: {what} is not a number", remedy=f"write, for example, {example}"
        ) from error


def _blocks(spec: str, fabric: Fabric, sizes: list[int]) -> tuple[Job, ...]:
    """Jobs on consecutive hosts, leaf switch after leaf switch."""
    hosts = [host for leaf in hosts_by_leaf(fabric).values() for host in leaf]
    if min(sizes) < 1 or sum(sizes) > len(hosts):
        raise InputError(
            f"{spec!r}: {fabric.name} has {plural(len(hosts), 'host')} for jobs of together "
            f"{sum(sizes)}",
            remedy="write sizes from 1 on that fit",
        )
    ends = np.cumsum([0, *sizes])
    return _jobs_on(fabric, [hosts[begin:end] for begin, end in pairwise(ends)])


def _jobs_on(fabric: Fabric, hosts: Iterable[list[str]]) -> tuple[Job, ...]:
    """Jobs `1`, `2`, … on the ports that jobs of these hosts use."""
    return tuple(
        make_job(str(number), (t for host in names for t in fabric.job_ports[host]))
        for number, names in enumerate(hosts, 1)
    )


def synthetic_jobs(
    fabric: Fabric, seed: int, *, busy: float = 0.85, largest: int = 64
) -> tuple[Job, ...]:
    """Jobs `1`, `2`, … on `busy` of the compute hosts; the same for the same seed and fabric."""
    random = np.random.default_rng(seed)
    usable = fabric.terminal_up & (fabric.terminal_kind == Kind.COMPUTE)
    hosts = [h for h, terminals in fabric.job_ports.items() if usable[list(terminals)].all()]
    order = random.permutation(len(hosts))[: round(busy * len(hosts))]
    jobs: list[Job] = []
    start = 0
    while start + 2 <= len(order):
        size = int(np.exp(random.uniform(np.log(2), np.log(largest + 1))))
        terminals = [t for h in order[start : start + size] for t in fabric.job_ports[hosts[h]]]
        jobs.append(make_job(str(len(jobs) + 1), terminals))
        start += size
    return tuple(jobs)
