"""From requests at the desk to keys in force: made, stacked, installed, read back.

The engine's routes stay as they are, so this takes none of a reroute's time; and it runs in the
agent's loop, between passes, so that installs are never at once. Whoever has to wait (the job is
not in the queue yet, OpenSM has just started) waits here for `patience_seconds` at most; then, and
whatever goes wrong, the job is told in a sentence that it goes on with offset 0.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from sar_agent.agent.decide import OUR_ENGINE
from sar_agent.agent.gather import Look
from sar_agent.agent.keys.manager import Draft
from sar_agent.agent.lock import Lock
from sar_agent.agent.reroute import Done, next_generation
from sar_agent.agent.state import State
from sar_agent.check.transition import Way
from sar_agent.errors import CheckFailed, InputError, SarError, Unserved
from sar_agent.events.keys import Ticket, none
from sar_agent.fabric import Fabric
from sar_agent.install.bridge import BridgeStatus
from sar_agent.install.five_phase.words import Phase
from sar_agent.install.plan import Plan, file_to_routes, make_plan
from sar_agent.install.routes_file import read_routes_file
from sar_agent.install.transit import Arrived, NotSafe, bring_into_force, transition_to
from sar_agent.jobs.mapping import mix_of_host_sets
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


def show(agent: Agent) -> None:
    """To the metrics, and to the desk why there are no keys at all."""
    fabric = agent.gatherer.fabric.value
    agent.keys.desk.closed = closed(agent)
    agent.metrics.show_keys(*agent.keys.counts(0 if fabric is None else 1 << fabric.lmc))


def resume(agent: Agent, look: Look, state: State | None) -> None:
    """After a restart, where the tables that were installed last are in force still: the keys in
    them are the leases', byte for byte."""
    ours = state and look.status and look.status.generation_in_force == state.generation
    same = ours and state and state.fabric_digest == look.fabric.digest.hex()
    if same and (routes := agent.tables.look(look.status, look.fabric)):
        agent.keys.resume(look.fabric, routes)


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
    if agent.updates.coordinator.state.phase is not Phase.IDLE:
        problem, status = "an update in phases is under way", None
    if why := _not_now(status, problem, state):
        _wait(agent, tickets, why)
        return
    assert state and status
    if (stands := _standing(agent, state)) is None:
        _wait(agent, tickets, "routes for the fabric as it is are being made")
        return
    drafts: list[Draft] = []
    for ticket in tickets:
        if draft := _draft(agent, ticket, stands.fabric, drafts):
            drafts.append(draft)
    if drafts:
        _install(agent, drafts, stands, state, status)


def _standing(agent: Agent, state: State) -> Plan | None:
    """The plan in force: the one installed last or, after a restart or somebody's rollback, what
    OpenSM's tables say. None where the fabric is another since, for which a pass will plan.
    Raises `SarError` where they cannot be read."""
    fabric = agent.gatherer.fabric.value
    if fabric is None or fabric.digest.hex() != state.fabric_digest:
        return None
    if agent.stands is None or agent.stands.generation != state.generation:
        file = read_routes_file(agent.bridge.dump())
        routes = file_to_routes(fabric, file)
        mix = mix_of_host_sets(fabric, state.jobs)
        agent.stands = make_plan(file.generation, fabric, mix, routes)
        agent.keys.resume(fabric, routes)
    return agent.stands


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
        if agent.keys.desk.age(ticket) >= agent.config.keys.patience_seconds:
            agent.keys.desk.answer(ticket, none(why))


def _draft(agent: Agent, ticket: Ticket, fabric: Fabric, drafts: list[Draft]) -> Draft | None:
    desk = agent.keys.desk
    record = _record(agent, ticket.job)
    if record is None:
        if desk.age(ticket) >= agent.config.keys.patience_seconds:
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
    agent: Agent, drafts: list[Draft], stands: Plan, state: State, status: BridgeStatus
) -> None:
    keys, planner, metrics = agent.keys, agent.rerouter.planner, agent.metrics
    start = time.monotonic()
    words = ", ".join(f"phase {one.lease.phase} of job {one.lease.job}" for one in drafts)
    try:
        generation = next_generation(agent.config, status, state)
        plan = planner.plan_keys(generation, keys.rows(stands.fabric, drafts), stands)
        plan = transition_to(plan, stands.routes, metrics.timed)
        if plan.transition and plan.transition.way is Way.FITTED:
            raise NotSafe(plan.transition)
        path = agent.config.agent.run_dir / "routes.sar"
        arrived = bring_into_force(agent.bridge, plan, path, stands.routes, metrics.timed)
    except SarError as error:
        planner.adopt(stands)
        if isinstance(error, CheckFailed):
            metrics.check_failures.inc()
        log.warning("no key for %s: %s", words, error)
        for one in drafts:
            keys.desk.answer(one.ticket, none(f"the key could not be put in force: {error}"))
        metrics.key_installs.labels("failed").inc()
        return
    now = time.monotonic()
    agent.store.save(
        state.model_copy(
            update={"generation": arrived.plan.generation, "installed_at": time.time()}
        )
    )
    keys.took(
        [
            Draft(
                one.ticket,
                one.lease.model_copy(update={"seconds": keys.desk.age(one.ticket)}),
                one.made,
            )
            for one in drafts
        ]
    )
    metrics.key_installs.labels("installed").inc()
    for one in drafts:
        metrics.key_seconds.observe(keys.desk.age(one.ticket))
    _took(agent, arrived, state)
    log.info(
        "generation %d is in force with a key for %s, %d entries changed (%.2f s)",
        arrived.plan.generation,
        words,
        arrived.changed.entries,
        now - start,
    )


def _took(agent: Agent, arrived: Arrived, before: State) -> None:
    """Only keys are other than before, so the generation kept for a rollback is this one now."""
    plan = agent.stands = arrived.plan
    agent.rerouter.planner.adopt(plan)
    agent.tables.took(arrived.found, agent.ask_status(), plan.fabric)
    agent.metrics.generation_wanted.set(plan.generation)
    agent.planned = replace(before.made, generation=plan.generation), plan.routes
    agent.keep(Done(plan, (), arrived.found))
    with suppress(OSError):
        agent.generations.path(before.generation).unlink()
