"""Jobs that come and go on a fabric that breaks and is repaired, as the agent sees it."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from sar_agent.demand.endpoints import multi_switch_mix
from sar_agent.fabric import Fabric
from sar_agent.fabric.components import is_connected
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import Job, make_job


def job_history(whole: Fabric, random: Random, steps: int) -> Iterator[tuple[Fabric, JobMix]]:
    """Connected fabrics, and the multi-switch jobs on them; nodes may be shared by jobs."""
    fabric, jobs = whole, [_job(whole, random, n) for n in range(random.randint(0, 4))]
    for step in range(steps):
        yield fabric, multi_switch_mix(fabric, jobs)
        for _ in range(random.randint(0, 2)):
            if jobs and random.random() < 0.5:
                jobs.pop(random.randrange(len(jobs)))
            else:
                jobs.append(_job(whole, random, 100 * step + len(jobs)))
        changed = _change(whole, fabric, random)
        if is_connected(changed) and changed.is_host_port.sum() > 1:
            fabric = changed


def _job(fabric: Fabric, random: Random, number: int) -> Job:
    hosts = [t for t in range(fabric.terminals) if fabric.is_host_port[t]]
    size = random.randint(2, min(12, len(hosts)))
    weight = random.choice([1.0, 1.0, 0.25])
    traffic = random.choice([None, None, "ring", "shift:2", "transpose", "stencil2d:2x3"])
    return make_job(str(number), random.sample(hosts, size), traffic, weight)


def _change(whole: Fabric, fabric: Fabric, random: Random) -> Fabric:
    """Nothing, half the time; or a cable, a host or a switch dies, or all are back."""
    what = random.randrange(10)
    if what == 0 and fabric.channels:
        return fabric.with_links_down([random.randrange(fabric.channels)])
    if what == 1:
        return fabric.with_links_down([], [random.randrange(fabric.terminals)])
    if what == 2:
        return fabric.with_switches_down([random.randrange(fabric.switches)])
    return whole if what in (3, 4) else fabric
