"""From requests at the desk to keys in force: made, stacked beside what stands, installed, read back.

The engine's routes stay as they are, so this takes none of a reroute's time; and it runs in the
agent's loop, between passes, so that installs are never at once. Whoever has to wait (the job is
not in the queue yet, OpenSM has just started) waits here for `patience_seconds` at most; then, and
whatever goes wrong, the job is told in a sentence that it goes on with offset 0.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from sar_agent.agent.decide import OUR_ENGINE
from sar_agent.agent.keys.manager import Draft
from sar_agent.agent.lock import Lock
from sar_agent.agent.reroute import next_generation
from sar_agent.agent.state import State
from sar_agent.errors import CheckFailed, InputError, SarError, Unserved
from sar_agent.events.keys import Ticket, none
from sar_agent.fabric import Fabric
from sar_agent.install.bridge import BridgeStatus
from sar_agent.install.install import put_in_force
from sar_agent.install.plan import entries_changed
from sar_agent.jobs.records import JobRecord
from sar_agent.routing.offsets import FIRST_KEY

if TYPE_CHECKING:
    from sar_agent.agent.loop import Agent

log = logging.getLogger(__name__)
LOCK_PATIENCE = 0.2
"""Seconds; a rollback by hand may take longer, then keys wait."""


def closed(agent: Agent) -> str:
    """Why there are no keys here, whoever asks; empty where there may be."""
    fabric = agent.gatherer.fabric.value
    if not agent.config.keys.enabled:
        return "routing keys are switched off (keys.enabled)"
    if agent.config.agent.mode != "install":
        return "the agent only observes and installs nothing"
    if fabric is not None and 1 << fabric.lmc <= FIRST_KEY:
        return (
            f"OpenSM runs with LMC {fabric.lmc}, so ports have no LID for a routing key; the site "
            "gives opensm.conf a larger lmc (sar-agent key plan says which)"
        )
    return ""


def serve(agent: Agent) -> None:
    """All requests that can be served now. Never raises `SarError`."""
    keys, desk = agent.keys, agent.keys.desk
    keys.obey()
    desk.closed = closed(agent)
    tickets = desk.pending()
    if desk.closed:
        for ticket in tickets:
            desk.answer(ticket, none(desk.closed))
        return
    if not tickets:
        return
    try:
        with Lock(agent.config.agent.state_dir, "pass.lock", LOCK_PATIENCE):
            _serve(agent, tickets)
    except SarError as error:
        _wait(agent, tickets, str(error))


def _serve(agent: Agent, tickets: list[Ticket]) -> None:
    status, problem = agent.gatherer.status()
    state = agent.store.load()
    fabric = agent.rerouter.planner.stands(agent.gatherer.fabric.value)
    if why := _not_now(status, problem, state) or ("" if fabric else "routes are being made"):
        _wait(agent, tickets, why)
        return
    assert fabric and state and status
    drafts = []
    for ticket in tickets:
        if draft := _draft(agent, ticket, fabric, drafts):
            drafts.append(draft)
    if drafts:
        _install(agent, drafts, fabric, state, status)


def _not_now(status: BridgeStatus | None, problem: str, state: State | None) -> str:
    if status is None:
        return problem
    if status.sm_state != "master":
        return f"this OpenSM is not the master but {status.sm_state}"
    if state is None or status.engine_in_force != OUR_ENGINE:
        return f"OpenSM has engine {status.engine_in_force} in force, not ours"
    if status.generation_in_force != state.generation:
        return "OpenSM has other routes in force than the agent's"
    return ""


def _wait(agent: Agent, tickets: list[Ticket], why: str) -> None:
    """Again later, but not for ever."""
    for ticket in tickets:
        if time.monotonic() - ticket.came >= agent.config.keys.patience_seconds:
            agent.keys.desk.answer(ticket, none(why))


def _draft(agent: Agent, ticket: Ticket, fabric: Fabric, drafts: list[Draft]) -> Draft | None:
    desk = agent.keys.desk
    record = _record(agent, ticket.job)
    if record is None:
        if time.monotonic() - ticket.came >= agent.config.keys.patience_seconds:
            desk.answer(ticket, {"ok": False, "error": f"no job {ticket.job} is running"})
        return None
    if ticket.uid not in desk.authority.trusted and record.uid != ticket.uid:
        sentence = f"job {ticket.job} is not one of uid {ticket.uid}"
        agent.gatherer.hints.refused(sentence)
        desk.answer(ticket, {"ok": False, "error": sentence})
        return None
    try:
        return agent.keys.draft(ticket, record, fabric, drafts)
    except Unserved as error:
        desk.answer(ticket, none(str(error)))
    except InputError as error:
        desk.answer(ticket, {"ok": False, "error": str(error)})
    return None


def _record(agent: Agent, number: str) -> JobRecord | None:
    """The job, if it runs; asked of Slurm again where it is not known yet."""

    def known() -> JobRecord | None:
        records = agent.gatherer.queue.value or ()
        return next((one for one in records if number in one.numbers), None)

    return known() or (known() if agent.gatherer.poll_now() else None)


def _install(
    agent: Agent, drafts: list[Draft], fabric: Fabric, state: State, status: BridgeStatus
) -> None:
    keys, planner, metrics = agent.keys, agent.rerouter.planner, agent.metrics
    start = time.monotonic()
    words = ", ".join(f"phase {one.lease.phase} of job {one.lease.job}" for one in drafts)
    try:
        plan = planner.plan_keys(
            next_generation(agent.config, status, state), keys.rows(fabric, drafts)
        )
        before = agent.tables.file
        path = agent.config.agent.run_dir / "routes.sar"
        found = put_in_force(agent.bridge, plan, path, metrics.timed)
    except SarError as error:
        if isinstance(error, CheckFailed):
            metrics.check_failures.inc()
        log.warning("no key for %s: %s", words, error)
        for one in drafts:
            keys.desk.answer(one.ticket, none(f"the key could not be put in force: {error}"))
        metrics.key_installs.labels("failed").inc()
        return
    now = time.monotonic()
    agent.store.save(
        state.model_copy(update={"generation": plan.generation, "installed_at": time.time()})
    )
    keys.took(
        [
            Draft(
                one.ticket,
                one.lease.model_copy(update={"seconds": now - one.ticket.came}),
                one.made,
            )
            for one in drafts
        ]
    )
    metrics.key_installs.labels("installed").inc()
    for one in drafts:
        metrics.key_seconds.observe(now - one.ticket.came)
    agent.took_key(plan, found, state)
    log.info(
        "generation %d is in force with a key for %s, %d entries changed (%.2f s)",
        plan.generation,
        words,
        entries_changed(before, found),
        now - start,
    )
