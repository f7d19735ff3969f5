"""A rehearsal on tiny fabrics: compiles all kernels of an agent before a job waits for them.

Kernels are compiled when they are first called and then kept on disk (`util/kernel_cache.py`).
Compiling takes a minute or two, and would otherwise happen while jobs start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from time import perf_counter

from sar_agent.agent.planner import Planner
from sar_agent.agent.publish import measured
from sar_agent.check.transition import examine
from sar_agent.config.model import Config
from sar_agent.demand.endpoints import mix_of_host_sets
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.conversion import file_to_routes
from sar_agent.formats.routes_file import decode
from sar_agent.install.amended import completed
from sar_agent.install.plan import Plan
from sar_agent.install.recent import longest_way
from sar_agent.install.transit import transition_to
from sar_agent.jobs import JobMix
from sar_agent.quality import Measures
from sar_agent.routing import Routes, load_engine
from sar_agent.routing.lanes.hop_tables import other_tables
from sar_agent.services.keys.make_key import warm
from sar_agent.util.kernels import compile_listeners

log = logging.getLogger(__name__)
FABRICS = ("xgft:3;3,3,2;1,2,2", "torus:4x4,hosts=1")
"""Trees need one lane; a torus needs several, or Up*/Down* paths, which is other code. On the tree
some channels stay too full, so that `cool` is called, too."""


@dataclass(frozen=True)
class Rehearsal:
    """The result of a rehearsal."""

    compiled: int
    """Number of kernels compiled; 0 where all of them were on disk."""
    seconds: float


def rehearse(config: Config, tell: Callable[[str], None] = log.info) -> Rehearsal:
    """Make plans that are not installed, with the engine and the options of `config`. Logs (by
    `tell`) that it takes a while, once there is something to compile. Raises `InputError` for an
    engine that does not exist."""
    began = perf_counter()
    load_engine(config.agent.engine)
    with _compiling(lambda: tell("compiling kernels once, a minute or two")) as seen:
        for spec in FABRICS:
            for lmc in (0, 1):
                with suppress(SarError):  # not every engine routes every fabric
                    _rehearse_on(config, replace(load_fabric(spec), lmc=lmc))
        warm()
    return Rehearsal(len(seen), perf_counter() - began)


def _rehearse_on(config: Config, fabric: Fabric) -> None:
    """Jobs come and go, and a cable breaks."""
    agent = config.agent.model_copy(update={"ib_partitions_file": ""})
    planner = Planner(config.model_copy(update={"agent": agent}), load_engine(agent.engine))
    cut = fabric.with_links_down([0], [])
    last: Plan | None = None
    present: Routes | None = None
    known: Measures | None = None
    for generation, (now, mix) in enumerate(_situations(fabric, cut), 1):
        last = plan = planner.plan(generation, now, mix, last)
        plan.measures.json()  # which a pass publishes
        transition_to(plan, present)
        if present:
            for before in (1, 3):  # packets of so many tables before
                also = [present] * before
                examine(now, present, plan.routes, also=also)
                examine(now, present, plan.routes, also=also, numbers=plan.numbers)
        file_to_routes(now, decode(plan.image))
        completed(now, replace(plan.routes, egress=plan.routes.egress.copy()))
        longest_way(now, replace(plan.routes, egress=plan.routes.egress.copy()))  # as read back
        for jobs in (mix, JobMix(()), mix):  # as read back, while jobs come and go
            with suppress(SarError):
                known = measured(known, now, jobs, plan.routes)
        present = plan.routes
    if present and config.agent.max_lanes > 1:
        other_tables(fabric, present.egress)  # seldom needed, so that tiny fabrics do without


def _situations(fabric: Fabric, cut: Fabric) -> Iterator[tuple[Fabric, JobMix]]:
    hosts: Sequence[str] = sorted(fabric.hosts)
    one, two = frozenset(hosts[::3]), frozenset(hosts[1::3])
    for now, jobs in (
        (fabric, []),
        (fabric, [one]),
        (fabric, [one, two]),
        (fabric, [two]),
        (cut, [two]),
        (cut, [one, two]),
        (fabric, [one]),
    ):
        yield now, mix_of_host_sets(now, jobs)


@contextmanager
def _compiling(first: Callable[[], None]) -> Iterator[set[object]]:
    """The kernels that are compiled inside the context."""
    seen: set[object] = set()

    def listener(kernel: object) -> None:
        if not seen:
            first()
        seen.add(kernel)

    compile_listeners.append(listener)
    try:
        yield seen
    finally:
        compile_listeners.remove(listener)
