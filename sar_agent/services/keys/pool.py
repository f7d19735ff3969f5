"""The leased routing keys on the present fabric, for the planner; and drafts of new ones.

`agent/install_keys.py` installs them. A repair does not wait for keys: if the fabric has changed,
routes for it are planned and installed without them (their LID offsets fall back to the shelter's
tables). Then the keys are made again, some at a time, and installed and saved together. Where the
subnet manager has repaired the tables in force, keys with them, only those are made again whose
flows share links more than before. If the present fabric can no longer support a key, the key is
dropped and the job continues: its LID offset falls back to the Up*/Down* tables.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from sar_agent.config.keys import KeysConfig
from sar_agent.errors import SarError, Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64, I32
from sar_agent.jobs.record import JobRecord
from sar_agent.routing.lid_offsets import FIRST_KEY, KeyRows
from sar_agent.routing.routes import Routes
from sar_agent.services.keys.flows import hosts_of
from sar_agent.services.keys.leases import Lease, Leases, free_offset
from sar_agent.services.keys.make_key import LinkedKey, from_routes, load_of, make, ports_of
from sar_agent.services.keys.requests import KeyRequests, LeasedKey
from sar_agent.services.keys.tickets import Ticket
from sar_agent.util.pace import steady_time

log = logging.getLogger(__name__)
LONGEST_LEASE = 86400.0
"""Seconds that an application may request at once."""
MOST_OF_A_JOB = 126
"""Leases of one job: as many as there may be LID offsets for keys."""
MOST_RANKS_OF_A_UID = 1 << 18
"""Numbers in the pairs of all leases of one user: they are kept, and saved."""
LoadBesides = Callable[[frozenset[int]], F64]
"""float64[C]: the load on LID offset 0 of the jobs that have none of these terminals."""
Key = tuple[str, str]
"""Job, by the number that clients use, and phase."""


@dataclass(frozen=True)
class KeyDraft:
    """A key that is not in force yet."""

    ticket: Ticket
    lease: Lease
    made: LinkedKey


class KeyPool:
    """`leases.json` in `folder`; `requests` learns what becomes of requests."""

    def __init__(self, config: KeysConfig, folder: Path, requests: KeyRequests) -> None:
        self.config, self.leases, self.requests = config, Leases(folder), requests
        most = steady_time() + LONGEST_LEASE  # a clock that was ahead has no say
        self.leases.save(
            lease.model_copy(update={"ends": most})
            for lease in self.leases
            if lease.ends is not None and lease.ends > most
        )
        self._fabric: Fabric | None = None
        self._made: dict[Key, LinkedKey] = {}
        """Rows and links of keys on `_fabric`."""
        self._owed: list[Key] = []
        """Leases whose rows are still to be made for `_fabric`."""
        self._remade: dict[Key, Lease] = {}
        """Leases whose rows were made again, until they are in force and saved."""

    def rows(self, fabric: Fabric, drafts: Sequence[KeyDraft] = ()) -> Mapping[int, KeyRows]:
        """Rows of all leases and `drafts`, by LID offset. After a change of the fabric there are
        none until `remake`."""
        self._move_to(fabric)
        new = {draft.lease.key for draft in drafts}
        keys = [
            *((x.offset, self._made.get(x.key)) for x in self.leases if x.key not in new),
            *((draft.lease.offset, draft.made) for draft in drafts),
        ]
        rows: dict[int, list[KeyRows]] = {}
        for offset, made in keys:
            if made:
                rows.setdefault(offset, []).append(made.rows)
        return {offset: _joined(parts) for offset, parts in rows.items()}

    def resume(self, fabric: Fabric, routes: Routes) -> None:
        """After a restart, take keys from the tables in force, so that nothing changes. A key of
        another fabric is owed; one that was lost on this fabric stays lost."""
        if self._fabric is None:
            self._move_to(fabric)
            here = [x for x in self.leases if x.fabric in ("", fabric.digest.hex())]
            lost = {lease.key for lease in here if lease.lost}
            self._owed = [key for key in self._owed if key not in lost]
            self._adopt(here, routes)

    def adopt_repaired(self, fabric: Fabric, routes: Routes) -> None:
        """Go on from `routes`, which are in force as the subnet manager has repaired them for
        `fabric`, keys included. A key whose flows share links more than before is owed."""
        self._move_to(fabric)
        self._adopt([lease for lease in self.leases if lease.key in self._owed], routes)

    def _adopt(self, leases: Iterable[Lease], routes: Routes) -> None:
        fabric, kept = self._on(), []
        for lease in leases:
            if lease.lost or lease.offset >= len(routes.egress):
                continue
            with suppress(SarError):  # `remake` says what no longer fits
                made = from_routes(fabric, lease, routes)
                if made.own <= lease.own:
                    self._made[lease.key] = made
                    self._owed.remove(lease.key)
                    kept.append(lease.model_copy(update={"fabric": fabric.digest.hex()}))
        self.leases.save(kept)
        self.report()

    def load(self) -> I32:
        """int32[C]: flows over each channel of all keys."""
        return load_of(self._on(), self._made.values())

    def draft(
        self,
        ticket: Ticket,
        record: JobRecord,
        fabric: Fabric,
        drafts: list[KeyDraft],
        others_load: LoadBesides,
    ) -> KeyDraft:
        """A key for the ticket beside those in force and `drafts`, and beside jobs without a key.
        Raises `InputError` for traffic that is not valid, `Unserved` where no key can serve it."""
        assert self._fabric is not None and self._fabric.digest == fabric.digest
        key = ticket.job, ticket.phase
        others = {k: m for k, m in self._made.items() if k != key}
        offset_of = {lease.key: lease.offset for lease in self.leases}
        for draft in drafts:
            others[draft.lease.key] = draft.made
            offset_of[draft.lease.key] = draft.lease.offset
        self._room_for(ticket, record.uid)
        load = load_of(fabric, others.values())
        hosts = hosts_of(record, ticket.wish.nodes)
        with_keys = ports_of(fabric, hosts).union(*(m.ports for m in others.values()))
        made = make(fabric, hosts, ticket.wish, load + others_load(with_keys))
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
            **asdict(ticket.wish),
            hosts=hosts,
            ends=None if ticket.with_job else now + self._seconds(ticket.lease),
            made_at=now,
            own=made.own,
            total=made.total(load),
            seconds=0.0,
            fabric=fabric.digest.hex(),
        )
        return KeyDraft(ticket, lease, made)

    def lease(self, drafts: list[KeyDraft]) -> None:
        """`drafts` are in force: they become leases, and their requests are answered."""
        for draft in drafts:
            self._made[draft.lease.key] = draft.made
        self.leases.save(
            draft.lease.model_copy(update={"seconds": self.requests.age(draft.ticket)})
            for draft in drafts
        )
        self.report()

    def release(self, keys: Collection[Key]) -> None:
        """Free the offsets of `keys`. Their tables stay, unused, until the next install."""
        for key in keys:
            self._made.pop(key, None)
            self._remade.pop(key, None)
        self.leases.drop(keys)
        self.report()

    def release_ended(self, running: Collection[str]) -> None:
        """Release the keys of jobs that are not among `running` (numbers), and those whose lease is
        over."""
        gone = [lease.key for lease in self.leases if lease.job not in running]
        over = [lease.key for lease in self.leases.over() if lease.key not in gone]
        for job, phase in over:
            log.info("the lease of job %s's key for phase %s is over", job, phase)
        if gone or over:
            self.release(gone + over)

    def apply_orders(self) -> None:
        """Clients order the end of a key that they have, or a longer lease."""
        orders = self.requests.orders()
        longer = []
        for key, seconds in orders.renewed.items():
            lease = self.leases.get(key)
            if lease and lease.ends is not None and key not in orders.done:
                longer.append(
                    lease.model_copy(update={"ends": steady_time() + self._seconds(seconds)})
                )
        if longer:
            self.leases.save(longer)
        if orders.done:
            self.release(orders.done)

    def report(self) -> None:
        """Report to `requests` which keys there are."""
        self.requests.show(
            {
                lease.key: LeasedKey(
                    -1 if lease.uid is None else lease.uid,
                    lease.wish,
                    answer_of(lease, self.config),
                    in_force=not lease.lost
                    and lease.key in self._made
                    and lease.key not in self._remade,
                )
                for lease in self.leases
            },
            owed=self.owed,
        )

    @property
    def owed(self) -> bool:
        """Whether there are leases whose rows are not in force on the present fabric."""
        return bool(self._owed or self._remade)

    def remake(self, fabric: Fabric, enough: Callable[[], bool], others_load: LoadBesides) -> bool:
        """Make rows of leases for a changed fabric: at least one, and until `enough` returns True.
        True once all are made; then they are to be installed, and `remade` called."""
        self._move_to(fabric)
        while self._owed:
            if lease := self.leases.get(self._owed.pop(0)):
                self._remake(lease, fabric, others_load)
            if enough():
                break
        if not self.owed:
            self.report()
        return not self._owed

    def remade(self) -> None:
        """The rows made again are in force: save and report them."""
        if self._remade:
            log.info("keys of %d phases were made for the changed fabric", len(self._remade))
        self.leases.save(self._remade.values())
        self._remade = {}
        self.report()

    def _remake(self, lease: Lease, fabric: Fabric, others_load: LoadBesides) -> None:
        load = self.load()
        keyed = (ports_of(fabric, other.hosts) for other in self.leases)
        try:
            if lease.offset >= 1 << fabric.lmc:
                raise Unserved(f"OpenSM runs with LMC {fabric.lmc} now")
            static = others_load(frozenset().union(*keyed))
            made = make(fabric, lease.hosts, lease.wish, load + static)
            if lease.lost and not self._is_free(lease, made):
                raise Unserved("another job's key has its LID offset now")
        except SarError as error:
            lost = self._lost(lease, str(error))
            self._remade |= {lease.key: lease for lease in lost}
            return
        self._made[lease.key] = made
        now = {"own": made.own, "total": made.total(load), "lost": ""}
        self._remade[lease.key] = lease.model_copy(update=now | {"fabric": fabric.digest.hex()})

    def _is_free(self, lease: Lease, made: LinkedKey) -> bool:
        """Whether no other lease has a lost key's offset on any of its ports."""
        return not any(
            other.offset == lease.offset
            and other.key != lease.key
            and (other.key in self._made or not other.lost)
            and not made.ports.isdisjoint(ports_of(self._on(), other.hosts))
            for other in self.leases
        )

    def _on(self) -> Fabric:
        assert self._fabric is not None
        return self._fabric

    def lose_all(self, why: str) -> None:
        """Drop all keys, since no plan passes its checks with them."""
        self.leases.save(lost for lease in self.leases for lost in self._lost(lease, why))
        self.report()

    def counts(self, offsets: int) -> tuple[int, int, int, int, int, int]:
        """For `Metrics.show_keys`, with `offsets` LID offsets a port."""
        leases = list(self.leases)
        pool = max(0, offsets - FIRST_KEY)
        used = {lease.offset for lease in leases if FIRST_KEY <= lease.offset < offsets}
        own = max((key.own for key in self._made.values()), default=0)
        total = int(self.load().max(initial=0)) if self._made else 0
        lost = sum(bool(lease.lost) for lease in leases)
        return len(leases) - lost, lost, pool, pool - len(used), own, total

    def made(self, key: Key) -> LinkedKey | None:
        """The rows and links of a lease, where it is not lost."""
        return self._made.get(key)

    def _seconds(self, wanted: float | None) -> float:
        return min(wanted or self.config.lease_seconds, LONGEST_LEASE)

    def _room_for(self, ticket: Ticket, owner: int | None) -> None:
        others = [x for x in self.leases if x.key != (ticket.job, ticket.phase)]
        if sum(lease.job == ticket.job for lease in others) >= MOST_OF_A_JOB:
            raise Unserved(f"job {ticket.job} has {MOST_OF_A_JOB} routing keys already")
        ranks = sum(len(lease.pairs) for lease in others if lease.uid == owner)
        if ranks + len(ticket.wish.pairs) > MOST_RANKS_OF_A_UID:
            raise Unserved(
                f"the routing keys of uid {owner} have {MOST_RANKS_OF_A_UID} ranks in their pairs "
                "already; name a pattern, or release the key of a phase that is over"
            )

    def _move_to(self, fabric: Fabric) -> None:
        if self._fabric is not None and self._fabric.digest == fabric.digest:
            return
        self._fabric, self._made, self._remade = fabric, {}, {}
        self._owed = [lease.key for lease in self.leases]
        self.report()

    def _lost(self, lease: Lease, why: str) -> list[Lease]:
        """The lease to be saved as lost; none where it was already."""
        self._made.pop(lease.key, None)
        if lease.lost == why:
            return []
        log.warning(
            "job %s lost its key for phase %s: %s; its traffic takes the shelter's tables",
            lease.job,
            lease.phase,
            why,
        )
        return [lease.model_copy(update={"lost": why})]


def answer_of(lease: Lease, config: KeysConfig) -> dict[str, object]:
    """The answer to a client about a key in force."""
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
    return KeyRows(
        np.concatenate([part.destinations for part in rows]),
        np.concatenate([part.egress for part in rows]),
    )
