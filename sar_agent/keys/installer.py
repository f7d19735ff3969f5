"""From requests at the desk to keys in force: made, stacked, installed, read back.

The engine's routes stay as they are, so this takes none of a reroute's time; and it runs in the
agent's loop, between passes, so that installs are never at once. Whoever has to wait (the job is
not in the queue yet, OpenSM has just started) waits here for `patience_seconds` at most; then, and
whatever goes wrong, the job is told in a sentence that it goes on with offset 0.

Users decide how much is asked, so a turn has an end: one look at the queue for all requests,
`BUDGET` seconds to make keys, and what is left waits for the next turn. After a turn that took all
of it there is none for as long. An exception that nobody expected ends the turn, not the agent.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from sar_agent.agent.decide import OUR_ENGINE
from sar_agent.agent.gather import Observation
from sar_agent.agent.reroute import Rerouter, next_generation
from sar_agent.agent.show import Show
from sar_agent.agent.standing import InstalledRoutes
from sar_agent.agent.state import State
from sar_agent.config.model import Config
from sar_agent.errors import CheckFailed, InputError, SarError, TooMany, Unserved
from sar_agent.events.message import RefusalReason
from sar_agent.fabric import Fabric
from sar_agent.five_phase.messages import Phase
from sar_agent.install.plan import Plan
from sar_agent.jobs.record import JobRecord
from sar_agent.keys.pool import KeyDraft, KeyPool
from sar_agent.keys.requests import none
from sar_agent.keys.tickets import Ticket
from sar_agent.opensm.plugin_client import PluginStatus
from sar_agent.opensm.plugin_install import NotYet
from sar_agent.routing.lid_offsets import FIRST_KEY
from sar_agent.util.lock_file import Lock
from sar_agent.util.unexpected_errors import UnexpectedErrors

log = logging.getLogger(__name__)
LOCK_PATIENCE = 0.2
"""Seconds; a rollback by hand may take longer, then keys wait."""
BUDGET = 0.5
"""Seconds of a turn in which keys are made; one is made at least."""
LOOK_PAUSE = 0.2
"""Least seconds from one look at the queue because of requests to the next."""
LOOK_SHARE = 10.0
"""And at least so many times as long as the last look took: no more than a tenth of the loop's
time, and of slurmctld's, goes into looks that anybody may call for."""
OWED_PAUSE = 1.0
LONGEST_PAUSE = 60.0
"""Seconds until keys are tried again that could not be put in force for a changed fabric; twice as
many each time."""


class KeyInstaller:
    """What `keys` has asked of it, put in force beside the routes that stand."""

    def __init__(
        self,
        config: Config,
        keys: KeyPool,
        rerouter: Rerouter,
        standing: InstalledRoutes,
        show: Show,
    ) -> None:
        self.config, self.keys = config, keys
        self.rerouter, self.standing = rerouter, standing
        self.gatherer, self.metrics = rerouter.gatherer, show.metrics
        self.ask_status = show.ask_status
        self.clock: Callable[[], float] = time.monotonic
        self.unexpected = UnexpectedErrors(self.metrics.unexpected_errors, lambda: self.clock())
        self._looked = self._look_after = -math.inf
        """When the queue was last looked at because of a request, and when it may be again."""
        self._pause, self._retry_at = OWED_PAUSE, -math.inf
        self._next_turn = -math.inf

    def show(self) -> None:
        """To the metrics, and to the desk why there are no keys at all."""
        fabric = self.gatherer.fabric.value
        self.keys.desk.closed = self._closed()
        self.metrics.show_keys(*self.keys.counts(0 if fabric is None else 1 << fabric.lmc))

    def resume(self, look: Observation, state: State | None) -> None:
        """After a restart, where the tables that were installed last are in force still: the keys
        in them are the leases', byte for byte."""
        ours = state and look.status and look.status.generation_in_force == state.generation
        same = ours and state and state.fabric_digest == look.fabric.digest.hex()
        if same and (routes := self.standing.tables.look(look.status, look.fabric)):
            self.keys.resume(look.fabric, routes)

    def serve(self) -> None:
        """Requests that can be served now, as many as the turn has time for. Raises nothing."""
        start = self.clock()
        if self.unexpected.wait("keys") or start < self._next_turn:
            return
        tickets: list[Ticket] = []
        try:
            self._turn(tickets)
            self.unexpected.good("keys")
            end = self.clock()
            if end - start >= BUDGET:  # the door needs the interpreter, too
                self._next_turn = end + min(end - start, LONGEST_PAUSE)
        except Exception as error:
            self.unexpected.caught("keys", error)
            self._away(tickets)
            self.keys.desk.later(LONGEST_PAUSE)

    def _away(self, tickets: list[Ticket]) -> None:
        """After an error of ours: it is not tried again at once."""
        for ticket in tickets:
            self.keys.desk.answer(ticket, none("an error of the agent; see its log"))

    def _turn(self, tickets: list[Ticket]) -> None:
        self.keys.obey()
        desk = self.keys.desk
        desk.closed = self._closed()
        tickets += desk.pending()
        if desk.closed:
            for ticket in tickets:
                desk.answer(ticket, none(desk.closed))
        elif tickets or self.keys.owed:
            try:
                with Lock(self.config.agent.state_dir, "pass.lock", LOCK_PATIENCE):
                    self._serve(tickets)
            except SarError as error:
                self._wait(tickets, str(error))
        self.show()

    def _closed(self) -> str:
        """Why there are no keys here, whoever asks; empty where there may be."""
        fabric = self.gatherer.fabric.value
        if not self.config.keys.enabled:
            return "routing keys are switched off (keys.enabled)"
        if self.config.agent.mode != "install":
            return "the agent only observes and installs nothing"
        if fabric is not None and 1 << fabric.lmc <= FIRST_KEY:
            return (
                f"OpenSM runs with LMC {fabric.lmc}, so ports have no LID for a routing key; the "
                "site gives opensm.conf a larger lmc (sar-agent key plan says which)"
            )
        return ""

    def _serve(self, tickets: list[Ticket]) -> None:
        status, problem = self.gatherer.status()
        state, fabric = self.standing.store.load(), self.gatherer.fabric.value
        if self.rerouter.updates.coordinator.state.phase is not Phase.IDLE:
            problem, status = "an update in phases is under way", None
        if why := _not_now(status, problem, state):
            self._wait(tickets, why)
            return
        assert state and status
        stands = self.standing.plan(state, fabric) if fabric else None
        if stands is None:
            self._wait(tickets, "routes for the fabric as it is are being made")
            return
        self.keys.resume(stands.fabric, stands.routes)
        until = self.clock() + BUDGET

        def enough() -> bool:
            return self.clock() >= until

        if self.clock() < self._retry_at or not self.keys.remake(stands.fabric, enough):
            self._wait(tickets, "keys are being made for the fabric as it is")
            return
        if self.keys.owed:
            self._install([], stands, state, status)
            return
        records = self._records(tickets)
        drafts: list[KeyDraft] = []
        for ticket in tickets:
            if draft := self._draft(ticket, records.get(ticket.job), stands.fabric, drafts):
                drafts.append(draft)
            if enough():
                break
        if drafts:
            self._install(drafts, stands, state, status)

    def _wait(self, tickets: list[Ticket], why: str) -> None:
        """Again later, but not for ever."""
        self.keys.desk.later(OWED_PAUSE)
        for ticket in tickets:
            if self.keys.desk.age(ticket) >= self.config.keys.request_timeout_seconds:
                self.keys.desk.answer(ticket, none(why))

    def _draft(
        self, ticket: Ticket, record: JobRecord | None, fabric: Fabric, drafts: list[KeyDraft]
    ) -> KeyDraft | None:
        desk = self.keys.desk
        if record is None:
            if desk.age(ticket) < self.config.keys.request_timeout_seconds:
                return None
            if self._looked >= self.clock() - desk.age(ticket):
                desk.answer(ticket, {"ok": False, "error": f"no job {ticket.job} is running"})
            else:
                desk.answer(ticket, none("Slurm's queue could not be looked at in time"))
            return None
        if ticket.uid not in desk.authority.trusted and record.uid != ticket.uid:
            sentence = f"job {ticket.job} is not one of uid {ticket.uid}"
            self.gatherer.hints.refused(sentence)
            desk.answer(ticket, {"ok": False, "error": sentence})
            return None
        try:
            return self.keys.draft(ticket, record, fabric, drafts)
        except Unserved as error:
            desk.answer(ticket, none(str(error)))
        except InputError as error:
            if isinstance(error, TooMany):
                desk.authority.refused(RefusalReason.TOO_MANY, str(error))
            desk.answer(ticket, {"ok": False, "error": str(error)})
        except Exception as error:
            self.unexpected.caught("keys", error)
            self._away([ticket])
        return None

    def _records(self, tickets: list[Ticket]) -> dict[str, JobRecord]:
        """By number, the jobs of the tickets that run; Slurm is asked again, once for all of them
        and not too often, where some are not known yet."""
        wanted = {one.job for one in tickets}

        def known() -> dict[str, JobRecord]:
            records = self.gatherer.queue.value or ()
            return {number: one for one in records for number in one.numbers if number in wanted}

        found = known()
        now = self.clock()
        if len(found) == len(wanted) or now < self._look_after:
            return found
        good = self.gatherer.poll_now()
        after = self.clock()
        self._look_after = after + max(LOOK_PAUSE, LOOK_SHARE * (after - now))
        if not good:
            return found
        self._looked = now
        return known()

    def _install(
        self, drafts: list[KeyDraft], stands: Plan, state: State, status: PluginStatus
    ) -> None:
        start = time.monotonic()
        words = _words(drafts)
        generation = next_generation(self.config, status, state)
        try:
            rows = self.keys.rows(stands.fabric, drafts)
            arrived = self.rerouter.install_keys(generation, rows, stands)
        except NotYet as error:  # nothing has failed: OpenSM is at work
            self._wait([one.ticket for one in drafts], str(error))
            self._later()
            return
        except SarError as error:
            if isinstance(error, CheckFailed):
                self.metrics.check_failures.inc()
            log.warning("no key for %s: %s", words, error)
            for one in drafts:
                sentence = f"the key could not be put in force: {error}"
                self.keys.desk.answer(one.ticket, none(sentence))
            self.metrics.key_installs.labels("failed").inc()
            self._later()
            return
        plan, now = arrived.plan, time.monotonic()
        # Only keys are other than before: all else that the state says goes on.
        new = {"generation": plan.generation, "installed_at": time.time()}
        after = state.model_copy(update=new)
        self.standing.store.save(after)
        self._pause = OWED_PAUSE
        self.keys.remade()
        self.keys.took(drafts)
        self.metrics.key_installs.labels("installed").inc()
        for one in drafts:
            self.metrics.key_seconds.observe(self.keys.desk.age(one.ticket))
        self.standing.took(plan, arrived.found, self.ask_status(), after.made)
        self.standing.keep(plan, instead=state.generation)
        self.metrics.generation_wanted.set(plan.generation)
        log.info(
            "generation %d is in force with a key for %s, %d entries changed (%.2f s)",
            plan.generation,
            words,
            arrived.changed.entries,
            now - start,
        )

    def _later(self) -> None:
        """Keys that are to be made again are, ever less often."""
        if self.keys.owed:
            self._retry_at = self.clock() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            self.keys.desk.later(self._pause)


def _words(drafts: list[KeyDraft]) -> str:
    """Of some of them, for the log."""
    if not drafts:
        return "all phases, on the fabric as it is"
    said = [f"phase {one.lease.phase} of job {one.lease.job}" for one in drafts]
    return ", ".join(said[:5]) + (f" and {len(said) - 5} more" if len(said) > 5 else "")


def _not_now(status: PluginStatus | None, problem: str, state: State | None) -> str:
    """Why nothing can be put in force beside what is; empty where it can."""
    if status is None:
        return problem
    if status.sm_state != "master":
        return f"this OpenSM is not the master but {status.sm_state}"
    if state is None or status.engine_in_force != OUR_ENGINE:
        return f"OpenSM has engine {status.engine_in_force} in force, not ours"
    if status.generation_in_force != state.generation:
        return "OpenSM has other routes in force than the agent's"
    return ""
