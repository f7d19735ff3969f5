"""Maps the ranks of a trace to terminals."""

from __future__ import annotations

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric, Kind
from sar_agent.fabric.hostnames import hca_order
from sar_agent.fabric.model import I32
from sar_agent.jobs import JobMix
from sar_lab.research.trace.program_trace import ProgramTrace

Placement = list[I32]
"""For each program int32[ranks]: the terminal of each rank."""


def place_ranks(fabric: Fabric, trace: ProgramTrace, how: str, seed: int = 0) -> Placement:
    """`linear` places the jobs one after the other in the order of the fabric, `random` on random
    compute ports. Raises `InputError` where there are too few ports."""
    if how not in ("linear", "random"):
        raise InputError(f"no placement is called {how!r}", remedy="linear, random")
    free = np.flatnonzero(fabric.is_host_port & (fabric.terminal_kind == Kind.COMPUTE))
    needed = sum(program.ranks for program in trace.programs)
    if needed > len(free):
        raise InputError(
            f"{trace.name} has {needed} ranks, but {fabric.name} only {len(free)} compute ports",
            remedy="use a larger fabric or fewer ranks",
        )
    if how == "random":
        free = np.random.default_rng(seed).permutation(free)
    ends = np.cumsum([program.ranks for program in trace.programs])[:-1]
    return [part.astype(np.int32) for part in np.split(free[:needed], ends)]


def place_jobs(fabric: Fabric, trace: ProgramTrace, mix: JobMix) -> Placement:
    """Places each program on the terminals of the job of the same name, in the order of host names
    and rails. Raises `InputError` where no such job runs or it has too few ports."""
    jobs = {job.id: job for job in mix.jobs}
    placement = []
    for program in trace.programs:
        if program.job not in jobs:
            raise InputError(
                f"job {program.job!r} of {trace.name} is not one of the jobs that span several "
                "leaf switches",
                remedy="give its hosts, or --place random",
            )
        terminals = jobs[program.job].terminals.tolist()
        if len(terminals) < program.ranks:
            raise InputError(
                f"job {program.job!r} has {program.ranks} ranks in {trace.name}, but "
                f"{len(terminals)} host ports",
                remedy="a port can have one rank",
            )
        order = sorted(
            terminals,
            key=lambda t: (hca_order(fabric.terminal_host[t]), int(fabric.terminal_rail[t])),
        )
        placement.append(np.array(order[: program.ranks], np.int32))
    return placement
