"""The keys that are leased, on the fabric as it is, for the planner; and drafts of new ones.

Nothing here installs: `serve.py` does. Keys are no part of a repair: where the fabric has changed,
the routes for it are planned and installed without them (their offsets lead by the shelter's
tables), and then the keys are made for it, some at a time, and installed and saved together. A key
that the fabric as it is now cannot hold any more is lost, not its job.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sar_agent.config.keys import KeysConfig
from sar_agent.errors import SarError, Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.jobs.record import JobRecord
from sar_agent.keys.flows import hosts_of, phases_of_wish
from sar_agent.keys.leases import Lease, Leases, free_offset
from sar_agent.keys.make_key import LinkedKey, from_routes, load_of, make, ports_of
from sar_agent.keys.requests import KeyRequests, LeasedKey
from sar_agent.keys.tickets import Ticket
from sar_agent.routing.lid_offsets import FIRST_KEY, KeyRows
from sar_agent.routing.routes import Routes
from sar_agent.util.steady_clock import steady_time

log = logging.getLogger(__name__)
MOST_OF_A_JOB = 126
"""Leases of one job: as many as there may be LID offsets for keys."""
MOST_RANKS_OF_A_UID = 1 << 18
"""Numbers in the pairs of all leases of one user: they are kept, and saved."""
Key = tuple[str, str]
"""Job, by the number that clients use, and phase."""


@dataclass(frozen=True)
class KeyDraft:
    """A key that is not in force yet."""

    ticket: Ticket
    lease: Lease
    made: LinkedKey


class KeyPool:
    """`leases.json` in `folder`; `desk` hears of what becomes of requests."""

    def __init__(self, config: KeysConfig, folder: Path, desk: KeyRequests | None = None) -> None:
        self.config, self.leases = config, Leases(folder)
        self.desk = desk or KeyRequests()
        self._fabric: Fabric | None = None
        self._made: dict[Key, LinkedKey] = {}
        """Of `_fabric`."""
        self._owed: list[Key] = []
        """Leases whose rows are still to be made for `_fabric`."""
        self._remade: dict[Key, Lease] = {}
        """Those that were, until they are in force and saved."""

    def rows(self, fabric: Fabric, drafts: Sequence[KeyDraft] = ()) -> Mapping[int, KeyRows]:
        """By LID offset, of all leases, and as it would be with `drafts`. Of a fabric that is
        another than before there are none until `remake`."""
        self._settle_on(fabric)
        keys = [(one.offset, self._made.get(one.key), one.key) for one in self.leases]
        new = {one.lease.key for one in drafts}
        found: dict[int, list[KeyRows]] = {}
        for offset, made in [
            *((offset, made) for offset, made, key in keys if key not in new),
            *((one.lease.offset, one.made) for one in drafts),
        ]:
            if made:
                found.setdefault(offset, []).append(made.rows)
        return {offset: _joined(rows) for offset, rows in found.items()}

    def resume(self, fabric: Fabric, routes: Routes) -> None:
        """After a restart, from the tables in force, so that nothing changes."""
        if self._fabric is not None:
            return
        self._fabric, self._owed = fabric, []
        lost: list[Lease] = []
        for lease in self.leases:
            try:
                phases = phases_of_wish(fabric, lease.hosts, lease.wish)
            except SarError as error:
                lost += self._lost(lease, str(error))
                continue
            if lease.fabric not in ("", fabric.digest.hex()):
                self._owed.append(lease.key)
            elif not lease.lost and lease.offset < len(routes.egress):
                self._made[lease.key] = from_routes(
                    fabric, lease.hosts, phases, lease.offset, routes
                )
        self.leases.put(lost)
        self.show()

    def load(self, besides: Collection[Key] = ()) -> I32:
        """int32[C]: flows of all keys over each channel but those of `besides`."""
        return load_of(self._on(), (m for key, m in self._made.items() if key not in besides))

    def draft(
        self, ticket: Ticket, record: JobRecord, fabric: Fabric, drafts: list[KeyDraft]
    ) -> KeyDraft:
        """A key for the ticket beside those in force and `drafts`. Raises `InputError` for a wish
        that makes no sense, `Unserved` where there is no key for it."""
        assert self._fabric is not None and self._fabric.digest == fabric.digest
        key = ticket.job, ticket.phase
        others = {k: m for k, m in self._made.items() if k != key}
        offset_of = {lease.key: lease.offset for lease in self.leases}
        for one in drafts:
            others[one.lease.key], offset_of[one.lease.key] = one.made, one.lease.offset
        self._room_for(ticket, record.uid)
        load = load_of(fabric, others.values())
        hosts = hosts_of(record, ticket.wish.nodes)
        made = make(fabric, hosts, ticket.wish, load)
        taken = [(offset_of[k], m.ports) for k, m in others.items()]
        offset = free_offset(1 << fabric.lmc, made.ports, taken)
        if offset is None:
            raise Unserved(
                f"all {(1 << fabric.lmc) - FIRST_KEY} LID offsets for keys are leased on hosts of "
                f"job {ticket.job}"
            )
        now = steady_time()
        lease = Lease(
            job=ticket.job,
            phase=ticket.phase,
            uid=record.uid,
            offset=offset,
            traffic=ticket.wish.traffic,
            pairs=ticket.wish.pairs,
            nodes=ticket.wish.nodes,
            tasks=ticket.wish.tasks,
            hosts=hosts,
            ends=None if ticket.with_job else now + self._seconds(ticket.lease),
            made_at=now,
            own=made.own,
            total=made.total(load),
            seconds=0.0,
            fabric=fabric.digest.hex(),
        )
        return KeyDraft(ticket, lease, made)

    def took(self, drafts: list[KeyDraft]) -> None:
        """They are in force: now they are leases, and the desk may say so."""
        for one in drafts:
            self._made[one.lease.key] = one.made
        self.leases.put(
            one.lease.model_copy(update={"seconds": self.desk.age(one.ticket)}) for one in drafts
        )
        self.show()

    def release(self, keys: Collection[Key]) -> None:
        """The offsets are free. Their tables stay until the next install: nobody uses them."""
        for key in keys:
            self._made.pop(key, None)
            self._remade.pop(key, None)
        self.leases.drop(keys)
        self.show()

    def settle(self, running: Collection[str]) -> None:
        """Release the keys of jobs that are not among `running` (numbers), and those past their
        end."""
        gone = [one.key for one in self.leases if one.job not in running]
        over = [one.key for one in self.leases.over() if one.key not in gone]
        for job, phase in over:
            log.info("the lease of job %s's key for phase %s is over", job, phase)
        if gone or over:
            self.release(gone + over)

    def obey(self) -> None:
        """What clients want of keys that are there: an end, or a longer lease."""
        orders = self.desk.orders()
        longer = []
        for key, seconds in orders.renewed.items():
            lease = self.leases.get(key)
            if lease and lease.ends is not None and key not in orders.done:
                longer.append(
                    lease.model_copy(update={"ends": steady_time() + self._seconds(seconds)})
                )
        if longer:
            self.leases.put(longer)
        if orders.done:
            self.release(orders.done)

    def show(self) -> None:
        """Tell the desk which keys there are."""
        self.desk.show(
            {
                one.key: LeasedKey(
                    -1 if one.uid is None else one.uid,
                    one.wish,
                    answer_of(one, self.config),
                    in_force=not one.lost and one.key in self._made and one.key not in self._remade,
                )
                for one in self.leases
            },
            owed=self.owed,
        )

    @property
    def owed(self) -> bool:
        """Whether there are leases whose rows are not in force for the fabric as it is."""
        return bool(self._owed or self._remade)

    def remake(self, fabric: Fabric, enough: Callable[[], bool]) -> bool:
        """Make rows of leases for a fabric that has changed, one at least and until there are
        `enough` for now. True once all are made; then they are to be installed, and `remade`."""
        self._settle_on(fabric)
        while self._owed:
            if lease := self.leases.get(self._owed.pop(0)):
                self._remake(lease, fabric)
            if enough():
                break
        if not self.owed:
            self.show()
        return not self._owed

    def remade(self) -> None:
        """They are in force: save them, and tell the desk."""
        if self._remade:
            log.info("keys of %d phases were made for the fabric as it is", len(self._remade))
        self.leases.put(self._remade.values())
        self._remade = {}
        self.show()

    def _remake(self, lease: Lease, fabric: Fabric) -> None:
        load = self.load()
        try:
            if lease.offset >= 1 << fabric.lmc:
                raise Unserved(f"OpenSM runs with LMC {fabric.lmc} now")
            made = make(fabric, lease.hosts, lease.wish, load)
            if lease.lost and not self._is_free(lease, made):
                raise Unserved("another job's key has its LID offset now")
        except SarError as error:
            lost = self._lost(lease, str(error))
            self._remade |= {one.key: one for one in lost}
            return
        self._made[lease.key] = made
        now = {"own": made.own, "total": made.total(load), "lost": ""}
        self._remade[lease.key] = lease.model_copy(update=now | {"fabric": fabric.digest.hex()})

    def _is_free(self, lease: Lease, made: LinkedKey) -> bool:
        """Whether no other lease has the offset of one that was lost on any of its ports."""
        return not any(
            one.offset == lease.offset
            and one.key != lease.key
            and (one.key in self._made or not one.lost)
            and not made.ports.isdisjoint(ports_of(self._on(), one.hosts))
            for one in self.leases
        )

    def _on(self) -> Fabric:
        assert self._fabric is not None
        return self._fabric

    def lose_all(self, why: str) -> None:
        """No plan passes its checks with them."""
        self.leases.put(one for lease in self.leases for one in self._lost(lease, why))
        self.show()

    def counts(self, offsets: int) -> tuple[int, int, int, int, int, int]:
        """For `Metrics.show_keys`, with `offsets` LID offsets a port."""
        leases = list(self.leases)
        pool = max(0, offsets - FIRST_KEY)
        used = {one.offset for one in leases if FIRST_KEY <= one.offset < offsets}
        own = max((one.own for one in self._made.values()), default=0)
        total = int(self.load().max(initial=0)) if self._made else 0
        lost = sum(bool(one.lost) for one in leases)
        return len(leases) - lost, lost, pool, pool - len(used), own, total

    def made(self, key: Key) -> LinkedKey | None:
        """The rows and links of a lease, where it is not lost."""
        return self._made.get(key)

    def _seconds(self, wanted: float | None) -> float:
        return min(wanted or self.config.lease_seconds, self.config.lease_max_seconds)

    def _room_for(self, ticket: Ticket, owner: int | None) -> None:
        others = [one for one in self.leases if one.key != (ticket.job, ticket.phase)]
        if sum(one.job == ticket.job for one in others) >= MOST_OF_A_JOB:
            raise Unserved(f"job {ticket.job} has {MOST_OF_A_JOB} routing keys already")
        ranks = sum(len(one.pairs) for one in others if one.uid == owner)
        if ranks + len(ticket.wish.pairs) > MOST_RANKS_OF_A_UID:
            raise Unserved(
                f"the routing keys of uid {owner} have {MOST_RANKS_OF_A_UID} ranks in their pairs "
                "already; name a pattern, or say done of a phase that is over"
            )

    def _settle_on(self, fabric: Fabric) -> None:
        if self._fabric is not None and self._fabric.digest == fabric.digest:
            return
        self._fabric, self._made, self._remade = fabric, {}, {}
        self._owed = [one.key for one in self.leases]
        self.show()

    def _lost(self, lease: Lease, why: str) -> list[Lease]:
        """The lease as it is to be saved, where that is news."""
        self._made.pop(lease.key, None)
        if lease.lost == why:
            return []
        log.warning(
            "job %s lost its key for phase %s: %s; its tasks are led by the shelter's tables",
            lease.job,
            lease.phase,
            why,
        )
        return [lease.model_copy(update={"lost": why})]


def answer_of(lease: Lease, config: KeysConfig) -> dict[str, object]:
    """What a client hears of a key in force."""
    return {
        "state": "in_force",
        "job": lease.job,
        "phase": lease.phase,
        "offset": lease.offset,
        "own": lease.own,
        "total": lease.total,
        "ends": lease.ends,
        "seconds": round(lease.seconds, 3),
        "env": dict.fromkeys(config.variables, str(lease.offset)),
    }


def _joined(rows: list[KeyRows]) -> KeyRows:
    if len(rows) == 1:
        return rows[0]
    return replace(
        rows[0],
        destinations=np.concatenate([one.destinations for one in rows]),
        egress=np.concatenate([one.egress for one in rows]),
    )
