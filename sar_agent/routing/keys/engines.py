"""`ark` and `nrk`: routing keys in the single table of a fabric without LMC (routing-keys-2017).

Every job whose traffic is known gets one key for all its phases. The rows of its hosts are those of
the key, all other rows those of `dmodk` (`ftree` on trees that are no XGFT). Contention between
hosts whose traffic is unknown is not bounded. `ark` uses keys as they are made; `nrk` shifts each
key around those before it, and keeps the keys of running jobs when others start or end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sar_agent.demand.patterns import NAMED, phases_of
from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I64
from sar_agent.jobs import Job, JobMix
from sar_agent.routing.dmodk import DModK
from sar_agent.routing.engine import Options, PreviousRoutes
from sar_agent.routing.keys.key import RoutingKey, make_key
from sar_agent.routing.keys.key_tree import KeyTree, key_tree
from sar_agent.routing.keys.rows import rows_of
from sar_agent.routing.keys.shift import Shift, choose_shift, shift_in, unshifted
from sar_agent.routing.routes import Routes
from sar_agent.routing.updn import Ftree
from sar_agent.util.plural import plural

NAMED_WORST = 3
"""How many jobs a remark names."""


@dataclass(frozen=True, eq=False)
class _Keyed:
    job: Job
    traffic: str
    key: RoutingKey


class Ark:
    """Keys as they are made, without a shift."""

    name = "ark"
    summary = "fat trees: no link contention inside jobs whose traffic is known (routing-keys-2017)"
    knows_jobs = True
    shifts = False

    def __init__(self) -> None:
        self._tree: KeyTree | None = None

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        """Raises `Unserved` where the fabric is no fat tree, `InputError` where `options.pattern`
        does not fit a job; a hint that does not fit is a remark."""
        return self._route(fabric, mix, options, None)

    def _route(
        self, fabric: Fabric, mix: JobMix, options: Options, before: PreviousRoutes | None
    ) -> Routes:
        if self._tree is None or self._tree.fabric.digest != fabric.digest:
            self._tree = key_tree(fabric)
        tree = self._tree
        keyed, remarks = _keys(tree, mix, options, self.shifts)
        known = {} if before is None else {_same(job, options): job for job in before.mix.jobs}
        base = (Ftree() if tree.view is None else DModK()).route(fabric, mix, options)
        egress = base.egress.copy()
        load = np.zeros(fabric.channels, np.int64)
        taken = np.zeros(fabric.terminals, np.bool_)
        shifts: dict[int, Shift] = {}
        new = []
        for number, keyed_job in enumerate(keyed):
            # A host of several jobs belongs to the first.
            key = keyed_job.key
            free = ~taken[key.destination]
            taken[key.destination] = True
            if before is not None and free.all() and _same(keyed_job.job, options) in known:
                shift = shift_in(key, before.routes.egress[0])
                if shift is not None:
                    shifts[number] = shift
                    load += shift.own
                    continue
            new.append(number)
        for number in new:
            key = keyed[number].key
            shifts[number] = choose_shift(key, load) if self.shifts else unshifted(key, load)
            load += shifts[number].own
        taken[:] = False
        for number, keyed_job in enumerate(keyed):
            rows = rows_of(keyed_job.key, shifts[number], fabric)
            free = ~taken[rows.destinations]
            egress[0, rows.destinations[free]] = rows.egress[free]
            taken[rows.destinations] = True
        return replace(
            base,
            engine=self.name,
            egress=egress,
            jobs_digest=mix.digest(fabric),
            remarks=(*remarks, *_remarks(tree, mix, keyed, load)),
        )


class Nrk(Ark):
    """Keys that are shifted to the least loaded links."""

    name = "nrk"
    summary = "as ark, and each job's key is shifted to the least loaded links (routing-keys-2017)"
    shifts = True

    def reroute(
        self, before: PreviousRoutes, fabric: Fabric, mix: JobMix, options: Options
    ) -> Routes:
        """Jobs that ran before keep their keys, so that a job that starts or ends changes only the
        rows of its own hosts. After a change of the fabric all keys are made again."""
        same = before.fabric.digest == fabric.digest and before.routes.engine == self.name
        return self._route(fabric, mix, options, before if same else None)


def _same(job: Job, options: Options) -> tuple[bytes, str]:
    return job.terminals.tobytes(), options.pattern or job.traffic or ""


def _keys(
    tree: KeyTree, mix: JobMix, options: Options, shifted: bool
) -> tuple[list[_Keyed], list[str]]:
    keyed, remarks = [], []
    for job in mix.jobs:
        traffic = options.pattern or job.traffic or ""
        if not options.pattern and traffic.partition(":")[0] not in NAMED:
            continue
        try:
            key = make_key(tree, phases_of(traffic, tree.fabric, job), shifted=shifted)
        except InputError as error:
            if options.pattern:
                raise InputError(f"job {job.id}: {error.what}", remedy=error.remedy) from error
            remarks.append(f"job {job.id} gets no key: {error.what}")
            continue
        keyed.append(_Keyed(job, traffic, key))
    return keyed, remarks


def _remarks(tree: KeyTree, mix: JobMix, keyed: list[_Keyed], load: I64) -> list[str]:
    if not keyed:
        return ["no job names its traffic, so there are no routing keys"]
    worst = [(max((c.flows for c in job.key.contention), default=0), job) for job in keyed]
    alone = sum(flows <= 1 for flows, _ in worst)
    rails = any(job.part_of for job in mix.jobs)
    remarks = [
        f"{len(keyed)} of {plural(len(mix.jobs), 'job')}{' or their rails' * rails} have a "
        "routing key; "
        f"{alone} of them have at most "
        f"one flow on each link; all jobs together have at most {int(load.max(initial=0))}"
    ]
    worst.sort(key=lambda pair: -pair[0])
    for flows, keyed_job in worst[:NAMED_WORST]:
        if flows > 1:
            bound = max(c.bound for c in keyed_job.key.contention)
            remarks.append(
                f"job {keyed_job.job.id} ({keyed_job.traffic}): {flows} flows of a phase on one "
                f"link; the lower bound is {bound}"
            )
    if tree.view is None:
        remarks.append(f"keys were searched for, not constructed: {tree.why_not.partition(';')[0]}")
    return remarks
