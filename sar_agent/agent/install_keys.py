"""From requests for routing keys to keys in force: made, stacked, installed, read back.

The engine's routes stay as they are, so a key costs none of a reroute's time. Keys are served in
the agent's loop, between passes, so that two installs never run at once. A request that has to wait
(its job is not in the queue yet, OpenSM has just started) waits here for at most
`REQUEST_SECONDS`. After that, and after any failure, the job is answered in a sentence that it
goes on with LID offset 0.

Users decide how many requests there are, so a turn is bounded: one poll of the queue for all
requests and `TURN_SECONDS` to make keys; the rest waits for the next turn. A turn that used all of
that time is followed by a pause of the same length. A user who asks again after each answer is
served ever less often (`keys/turns.py`). An unforeseen exception ends the turn, not the
agent.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from dataclasses import replace
from functools import partial

from sar_agent.agent.current import Current
from sar_agent.agent.observe_site import Observation
from sar_agent.agent.parts import Parts
from sar_agent.agent.state import State
from sar_agent.check.transition import Way
from sar_agent.errors import CheckFailed, InputError, SarError, TooMany, Unserved
from sar_agent.events.message import RefusalReason
from sar_agent.install.amended import completed
from sar_agent.install.changes import differences
from sar_agent.install.plan import Plan
from sar_agent.install.subnet_manager import InForce, NotYet, SmRefused, SmStatus
from sar_agent.install.transit import NotSafe
from sar_agent.jobs.record import JobRecord
from sar_agent.quality.channel_traffic import load_besides
from sar_agent.routing.lid_offsets import FIRST_KEY
from sar_agent.services.keys.make_key import warm
from sar_agent.services.keys.pool import KeyDraft
from sar_agent.services.keys.requests import none
from sar_agent.services.keys.tickets import Ticket
from sar_agent.util.lock_file import Lock
from sar_agent.util.pace import Backoff, Pace
from sar_agent.util.plural import plural
from sar_agent.util.unexpected_errors import UnexpectedErrors

log = logging.getLogger(__name__)
REQUEST_SECONDS = 10.0
"""Seconds for which a request waits for its job to be in the queue, and for OpenSM to be ready."""
LOCK_SECONDS = 0.2
"""Seconds to wait for the lock; while a person's rollback takes longer, keys wait."""
TURN_SECONDS = 0.5
"""Seconds of a turn in which keys are made; at least one key is made."""
LEAST_POLL_SECONDS = 0.2
"""Least seconds between two polls of the queue because of requests."""
POLL_PAUSE_RATIO = 10.0
"""Least ratio of that pause to the duration of the last poll: at most a tenth of the loop's time,
and of slurmctld's, goes into polls that any user can cause."""
RETRY_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
"""Seconds until keys that could not be installed on a changed fabric are tried again; they double
each time."""


class KeyInstaller:
    """Makes the keys that `pool` was asked for, and installs them beside the routes in force."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.config, self.pool = parts, parts.config, parts.pool
        self.observer, self.clock = parts.observer, time.monotonic
        counter = parts.metrics.unexpected_errors
        self.unexpected = UnexpectedErrors(counter, lambda: self.clock())
        self._backoff = Backoff(RETRY_SECONDS, LONGEST_PAUSE_SECONDS, clock=lambda: self.clock())
        self._pace = Pace(lambda: self.clock())
        self._polled = -math.inf
        """When the queue was last polled because of a request."""
        self._prepared = False

    @property
    def waiting(self) -> bool:
        """Whether requests wait, and may be served now."""
        return self.pool.requests.busy and not self.unexpected.wait("keys")

    def prepare(self) -> None:
        """Compile kernels before a job waits for them, at a site that starts without `warm-up`."""
        if not (self._prepared or self.pool.requests.closed):
            self._prepared = True
            threading.Thread(target=warm, daemon=True).start()

    def publish(self) -> None:
        """To the metrics, and to clients why there are no keys at all."""
        fabric = self.observer.fabric.value
        self.pool.requests.closed = self._closed()
        self.parts.metrics.show_keys(*self.pool.counts(0 if fabric is None else 1 << fabric.lmc))

    def resume(self, current: Current, site: Observation) -> None:
        """After a restart, where the tables that were installed last are still in force: the keys
        in them are the leases', byte for byte."""
        state, found = current.state, current.in_force
        if not (state and found and found.identity == state.identity):
            return
        if state.fabric_digest == site.fabric.digest.hex():
            self.pool.resume(site.fabric, found.routes)

    def serve(self, current: Current) -> Current:
        """Serve the requests that can be served now, as many as the turn has time for; what is in
        force then. Raises nothing."""
        start = self.clock()
        if self.unexpected.wait("keys") or not self._pace.due("turn"):
            return current
        tickets: list[Ticket] = []
        try:
            current = self._turn(tickets, current)
            self.unexpected.good("keys")
            end = self.clock()
            if end - start >= TURN_SECONDS:  # the message server needs the interpreter, too
                self._pace.put_off("turn", min(end - start, LONGEST_PAUSE_SECONDS))
        except Exception as error:
            self.unexpected.caught("keys", error)
            self._answer_error(tickets)
            self.pool.requests.later(LONGEST_PAUSE_SECONDS)
        return current

    def _answer_error(self, tickets: list[Ticket]) -> None:
        """Answer tickets after an unforeseen error, so that they are not tried again at once."""
        for ticket in tickets:
            self.pool.requests.answer(ticket, none("an error of the agent; see its log"))

    def _turn(self, tickets: list[Ticket], current: Current) -> Current:
        self.pool.apply_orders()
        requests = self.pool.requests
        requests.closed = self._closed()
        tickets += requests.pending()
        if requests.closed:
            for ticket in tickets:
                requests.answer(ticket, none(requests.closed))
        elif tickets or self.pool.owed:
            try:
                with Lock(self.config.agent.state_dir, "pass.lock", LOCK_SECONDS):
                    current = self._serve(tickets, current)
            except SarError as error:
                self._wait(tickets, str(error))
        self.publish()
        return current

    def _closed(self) -> str:
        """Why this site gives no keys at all; empty where it may."""
        fabric = self.observer.fabric.value
        if not self.config.keys.enabled:
            return "routing keys are switched off (keys.enabled)"
        if self.config.agent.mode != "install":
            return "the agent only observes and installs nothing"
        if fabric is not None and 1 << fabric.lmc <= FIRST_KEY:
            return (
                f"OpenSM runs with LMC {fabric.lmc}, so ports have no LID for a routing key; set a "
                "larger lmc in opensm.conf (`sar-agent key plan` says which) while no job runs: "
                "all LIDs change"
            )
        return ""

    def _serve(self, tickets: list[Ticket], current: Current) -> Current:
        """Raises `SarError` where all tickets have to wait."""
        reading = self.observer.read_status()
        state, fabric = self.parts.installed.store.load(), self.observer.fabric.value
        current = replace(current, state=state)
        if self.parts.updates.unfinished:
            raise NotYet("a five-phase update is under way")
        if reading.status is None or state is None:
            raise NotYet(reading.problem or "no routes of the agent's are in force yet")
        if why := _not_now(reading.status, state, self.parts.manager.name):
            raise NotYet(why)
        if fabric is not None:
            current = self.parts.installed.know_plan(current, fabric)
        in_force = current.plan_in_force(fabric) if fabric is not None else None
        if in_force is None:
            raise NotYet("routes for the changed fabric are being made")
        self.pool.resume(in_force.fabric, in_force.routes)
        until = self.clock() + TURN_SECONDS

        def enough() -> bool:
            return self.clock() >= until

        if self._backoff.wait() or not self.pool.remake(
            in_force.fabric, enough, partial(load_besides, in_force.measures.traffic)
        ):
            self._wait(tickets, "keys are being made for the changed fabric")
            return current
        drafts: list[KeyDraft] = []
        if not self.pool.owed:
            records = self._records(tickets)
            for ticket in tickets:
                if draft := self._draft(ticket, records.get(ticket.job), in_force, drafts):
                    drafts.append(draft)
                if enough():
                    break
        return self._install(drafts, current, in_force) if drafts or self.pool.owed else current

    def _wait(self, tickets: list[Ticket], why: str) -> None:
        """Leave the tickets for a later turn, but not for ever: then they are answered `why`."""
        self.pool.requests.later(RETRY_SECONDS)
        for ticket in tickets:
            if self.pool.requests.age(ticket) >= REQUEST_SECONDS:
                self.pool.requests.answer(ticket, none(why))

    def _draft(
        self, ticket: Ticket, record: JobRecord | None, in_force: Plan, drafts: list[KeyDraft]
    ) -> KeyDraft | None:
        requests = self.pool.requests
        if record is None:
            if requests.age(ticket) < REQUEST_SECONDS:
                return None
            if self._polled >= self.clock() - requests.age(ticket):
                requests.answer(ticket, {"ok": False, "error": f"no job {ticket.job} is running"})
            else:
                requests.answer(ticket, none("Slurm's queue could not be read in time"))
            return None
        if ticket.uid not in requests.authority.trusted and record.uid != ticket.uid:
            sentence = f"job {ticket.job} is not one of uid {ticket.uid}"
            requests.authority.refused(RefusalReason.NOT_OWNER, sentence)
            requests.answer(ticket, {"ok": False, "error": sentence})
            return None
        requests.begin(ticket)
        try:
            others_load = partial(load_besides, in_force.measures.traffic)
            return self.pool.draft(ticket, record, in_force.fabric, drafts, others_load)
        except Unserved as error:
            requests.answer(ticket, none(str(error)))
        except InputError as error:
            if isinstance(error, TooMany):
                requests.authority.refused(RefusalReason.TOO_MANY, str(error))
            requests.answer(ticket, {"ok": False, "error": str(error)})
        except Exception as error:
            self.unexpected.caught("keys", error)
            self._answer_error([ticket])
        return None

    def _records(self, tickets: list[Ticket]) -> dict[str, JobRecord]:
        """The running jobs of the tickets, by number. Where some are not known yet, the queue is
        polled again: once for all of them, and not too often."""
        wanted = {ticket.job for ticket in tickets}

        def known() -> dict[str, JobRecord]:
            records = self.observer.queue.value or ()
            return {n: record for record in records for n in record.numbers if n in wanted}

        records = known()
        now = self.clock()
        if len(records) == len(wanted) or not self._pace.due("poll"):
            return records
        good = self.observer.poll_queue()
        took = self.clock() - now
        self._pace.put_off("poll", max(LEAST_POLL_SECONDS, POLL_PAUSE_RATIO * took))
        if not good:
            return records
        self._polled = now
        return known()

    def _install(self, drafts: list[KeyDraft], current: Current, in_force: Plan) -> Current:
        """Install `drafts`, and keys that were made again, beside `in_force`: all of them or, where
        anything goes wrong, none."""
        start, names, state = time.monotonic(), _names(drafts), current.state
        planner, transit = self.parts.planner, self.parts.transit
        assert state
        try:
            rows, number = self.pool.rows(in_force.fabric, drafts), state.generation
            plan = planner.plan_keys(number + 1, rows, in_force, current.shelter)
            before = transit.before(plan.fabric)
            plan = transit.examine(plan, before)
            if why := not_as_planned(before, in_force, state):
                raise NotYet(why)
            if plan.transition and plan.transition.way is Way.FITTED:
                raise NotSafe(plan.transition)  # some of the keys would be missing
            result = transit.bring(plan, before)
        except SarError as error:
            if isinstance(error, NotYet) or (isinstance(error, SmRefused) and error.changed):
                # Nothing has failed: the subnet manager is at work.
                self._wait([draft.ticket for draft in drafts], str(error))
                self._later()
                return current
            if isinstance(error, CheckFailed):
                self.parts.metrics.check_failures.inc()
            log.warning("no key for %s: %s", names, error)
            for draft in drafts:
                sentence = f"the key could not be put in force: {error}"
                self.pool.requests.answer(draft.ticket, none(sentence))
            self.parts.metrics.key_installs.labels("failed").inc()
            self._later()
            return current
        record = self.parts.committer.record
        current, _ = record(current, result, state, None, how="", replaces=number)
        self._backoff.succeeded()
        self.pool.remade()
        self.pool.lease(drafts)
        self.parts.metrics.key_installs.labels("installed").inc()
        for draft in drafts:
            self.parts.metrics.key_seconds.observe(self.pool.requests.age(draft.ticket))
        log.info(
            "generation %d is in force with a key for %s, %d entries changed (%.2f s)",
            result.plan.generation,
            names,
            result.changed.entries,
            time.monotonic() - start,
        )
        return current

    def _later(self) -> None:
        """Keys that are to be made again are tried ever less often."""
        if self.pool.owed:
            self._backoff.failed()
            self.pool.requests.later(self._backoff.wait())


def not_as_planned(before: InForce, plan: Plan, state: State) -> str:
    """Why nothing can be added to `plan`, which `state` names: what was read back differs from it,
    or is not certain; empty where it is that plan."""
    if not before.status.ours or before.identity != state.identity:
        return f"generation {before.generation} is in force, not {plan.generation}"
    if not before.confirmed:
        return before.status.unsettled or "switches have not confirmed what they were sent"
    if before.status.unknown_terminals:
        ports = plural(before.status.unknown_terminals, "port is", "ports are")
        return f"{ports} not in the routes in force yet"
    wrong = differences(plan.routes_file, before.file)
    if wrong and before.status.amendments:
        wrong = plan.routes.entries_changed(completed(plan.fabric, before.routes))
    if wrong:
        return plural(wrong, "entry in force differs", "entries in force differ") + " from the plan"
    return ""


def _names(drafts: list[KeyDraft]) -> str:
    """Some of the keys, for the log."""
    if not drafts:
        return "all phases, on the changed fabric"
    names = [f"phase {draft.lease.phase} of job {draft.lease.job}" for draft in drafts]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _not_now(status: SmStatus, state: State, manager: str) -> str:
    """Why nothing can be installed beside the routes in force; empty where it can."""
    if status.role != "master":
        return f"this {manager} is not the master but {status.role}"
    if not status.ours:
        return f"{manager} has engine {status.engine} in force, not ours"
    if status.identity != state.identity:
        return f"{manager} has other routes in force than the agent's"
    return ""
