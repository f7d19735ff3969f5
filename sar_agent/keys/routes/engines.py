"""`ark` and `nrk`: keys in the one table that a fabric without LMC has.

Every job whose traffic is known gets a key, all its phases in one; the rows of its hosts are the
key's, everybody else's those of `dmodk` (`ftree` on trees that are no XGFT). Between hosts whose
traffic nobody named, nothing is promised. `ark` takes keys as they are made, `nrk` shifts each for
those before it, and leaves running jobs' keys alone when others come and go.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I64
from sar_agent.jobs import Job, JobMix
from sar_agent.jobs.patterns import NAMED, phases_of
from sar_agent.keys.routes.key import RoutingKey, make_key
from sar_agent.keys.routes.rows import rows_of
from sar_agent.keys.routes.shift import Shift, choose_shift, shift_in, unshifted
from sar_agent.keys.routes.tree import KeyTree, key_tree
from sar_agent.routing.engine import Options, PreviousRoutes
from sar_agent.routing.oblivious import DModK
from sar_agent.routing.routes import Routes
from sar_agent.routing.updn import Ftree

NAMED_WORST = 3
"""Jobs that a remark names."""


@dataclass(frozen=True, eq=False)
class _Keyed:
    job: Job
    traffic: str
    key: RoutingKey


class Ark:
    """Keys as they are made."""

    name = "ark"
    summary = "fat trees: jobs whose traffic is known meet themselves nowhere (routing-keys-2017)"
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
        began = time.perf_counter()
        if self._tree is None or self._tree.fabric.digest != fabric.digest:
            self._tree = key_tree(fabric)
        tree = self._tree
        keyed, remarks = _keys(tree, mix, options)
        known = {} if before is None else {_same(job, options): job for job in before.mix.jobs}
        base = (Ftree() if tree.view is None else DModK()).route(fabric, mix, options)
        egress = base.egress.copy()
        load = np.zeros(fabric.channels, np.int64)
        taken = np.zeros(fabric.terminals, np.bool_)
        shifts: dict[int, Shift] = {}
        new = []
        for number, one in enumerate(keyed):
            # A host of several jobs belongs to the first.
            mine = ~taken[one.key.destination]
            taken[one.key.destination] = True
            if before is not None and mine.all() and _same(one.job, options) in known:
                found = shift_in(one.key, before.routes.egress[0])
                if found is not None:
                    shifts[number] = found
                    load += found.own
                    continue
            new.append(number)
        for number in new:
            key = keyed[number].key
            shifts[number] = choose_shift(key, load) if self.shifts else unshifted(key, load)
            load += shifts[number].own
        taken[:] = False
        for number, one in enumerate(keyed):
            rows = rows_of(one.key, shifts[number], fabric)
            mine = ~taken[rows.destinations]
            egress[0, rows.destinations[mine]] = rows.egress[mine]
            taken[rows.destinations] = True
        return replace(
            base,
            engine=self.name,
            egress=egress,
            jobs_digest=mix.digest(fabric),
            seconds=time.perf_counter() - began,
            remarks=(*remarks, *_remarks(tree, mix, keyed, load)),
        )


class Nrk(Ark):
    """Keys, shifted."""

    name = "nrk"
    summary = "as ark, and each job's key is shifted to where others are least (routing-keys-2017)"
    shifts = True

    def reroute(
        self, before: PreviousRoutes, fabric: Fabric, mix: JobMix, options: Options
    ) -> Routes:
        """Jobs that were there keep their keys, so that others' starts and ends change only the
        rows of their own hosts; after a change of the fabric all are made anew."""
        same = before.fabric.digest == fabric.digest and before.routes.engine == self.name
        return self._route(fabric, mix, options, before if same else None)


def _same(job: Job, options: Options) -> tuple[bytes, str]:
    return job.terminals.tobytes(), options.pattern or job.traffic or ""


def _keys(tree: KeyTree, mix: JobMix, options: Options) -> tuple[list[_Keyed], list[str]]:
    keyed, remarks = [], []
    for job in mix.jobs:
        traffic = options.pattern or job.traffic or ""
        if not options.pattern and traffic.partition(":")[0] not in NAMED:
            continue
        try:
            key = make_key(tree, phases_of(traffic, tree.fabric, job))
        except InputError as error:
            if options.pattern:
                raise InputError(f"job {job.id}: {error.what}", remedy=error.remedy) from error
            remarks.append(f"job {job.id} gets no key: {error.what}")
            continue
        keyed.append(_Keyed(job, traffic, key))
    return keyed, remarks


def _remarks(tree: KeyTree, mix: JobMix, keyed: list[_Keyed], load: I64) -> list[str]:
    if not keyed:
        return ["no job says what its traffic is, so there are no routing keys"]
    worst = [(max((c.flows for c in one.key.contention), default=0), one) for one in keyed]
    alone = sum(flows <= 1 for flows, _ in worst)
    said = [
        f"{len(keyed)} of {len(mix.jobs)} jobs have a routing key; {alone} of them meet themselves "
        f"on no link; with all jobs there are at most {int(load.max(initial=0))} flows on one"
    ]
    worst.sort(key=lambda pair: -pair[0])
    for flows, one in worst[:NAMED_WORST]:
        if flows > 1:
            bound = max(c.bound for c in one.key.contention)
            said.append(
                f"job {one.job.id} ({one.traffic}): {flows} flows of a phase on one link, "
                f"{bound} at the least"
            )
    if tree.view is None:
        said.append(f"keys were searched for, not constructed: {tree.why_not.partition(';')[0]}")
    return said
