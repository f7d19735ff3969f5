"""A reroute: plan, examine, choose the method, bring into force, record, one step after the other.

Each step returns a value to the next. What was read and is no longer true starts them again.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from sar_agent.agent.commit import rings_moved
from sar_agent.agent.current import Current
from sar_agent.agent.decide import REPAIRS, Reason
from sar_agent.agent.history import HistoryEntry
from sar_agent.agent.observe_site import Observation
from sar_agent.agent.outcome import Outcome, Report, Result
from sar_agent.agent.parts import Parts
from sar_agent.agent.peer import peer_generation
from sar_agent.agent.reroute_pacer import planning_basis
from sar_agent.agent.state import State
from sar_agent.agent.update_strategy import UpdateMethod
from sar_agent.errors import CheckFailed, SarError
from sar_agent.install.changes import table_changes
from sar_agent.install.plan import Plan
from sar_agent.install.subnet_manager import NotYet, SmRefused
from sar_agent.install.transit import PLAN_ATTEMPTS, NotSafe, transition_to
from sar_agent.jobs.filter import host_sets
from sar_agent.quality import Measures
from sar_agent.routing.routes import Routes
from sar_agent.util.plural import plural

log = logging.getLogger(__name__)


def reroute(
    parts: Parts, reason: Reason, why: str, site: Observation, current: Current, *, install: bool
) -> tuple[Current, Report]:
    """Reroute because of `reason`, or only plan where nothing is to be installed, and publish how
    that went. `why` is the reason in words."""
    basis, engine = planning_basis(site), parts.config.agent.engine
    if wait := parts.backoff.wait(basis):
        failed = f"it failed {plural(parts.backoff.failures, 'time')}, next try in {wait:.0f} s"
        return current, Report(Result.WAITING, f"{why}; {failed}", reason)
    entry = HistoryEntry(reason, why, engine, current.measures)
    try:
        if install:
            current, outcome = _install(parts, entry, site, current)
        else:
            current = parts.publisher.planned(current, site.fabric, site.mix)
            capped = None if reason in REPAIRS else _replaced(current, site)[0]
            plan = parts.planner.plan(
                1, site.fabric, site.mix, current.last, current.shelter, capped
            )
            # A plan counts where it would have been installed over the one before.
            before = _planned_before(current, site)
            if stays := parts.pacing.held_back(reason, site, before, plan):
                return current, Report(Result.LATER, f"{why}; {stays}", reason)
            outcome = Outcome(Result.PLANNED, _judged(plan, current), "planned, not installed")
    except SarError as error:
        return current, _failed(parts, error, entry, site)
    parts.backoff.succeeded()
    plan, result = outcome.plan, outcome.result
    parts.publisher.new_plan(plan)
    seconds = time.monotonic() - entry.began
    replaced, made_for = _replaced(current, site)
    parts.metrics.reroutes.labels(reason.value, result.value).inc()
    if result is not Result.INSTALLED:
        made = State.before_install(plan, engine, host_sets(site.records))
        # What waits is shown, but the next plan does not start from it: it would drift away from
        # the tables in force.
        last = current.last if result is Result.LATER else plan
        current = replace(current.planned_as(plan, made), last=last)
    if result is not Result.LATER:
        parts.pacing.acted()
    if result is Result.PLANNED:
        entries = table_changes(site.fabric, replaced, plan.routes).entries if replaced else None
        moved = rings_moved(plan, made_for, replaced, plan.routes)
        parts.committer.decisions.add(
            entry, result, plan, entries_changed=entries, ring_entries_moved=moved
        )
    return current, Report(
        result,
        f"{why}; {outcome.words} ({plan.routes.engine}, {plan.mix.words()}, {seconds:.2f} s;"
        f" dark fiber {plan.measures.dark_fiber_ratio:.1%}, effective EFI max "
        f"{plan.measures.effective_efi_max}, largest load {plan.measures.load_max:.2f})",
        reason,
    )


def _install(
    parts: Parts, entry: HistoryEntry, site: Observation, current: Current
) -> tuple[Current, Outcome]:
    """Where other tables are in force meanwhile, or the fabric has changed since it was read, that
    is read again and planned for at once, a few times. Raises `SarError`; then nothing is
    installed, and the routes in force stay."""
    left = PLAN_ATTEMPTS
    while True:
        try:
            return _steps(parts, entry, site, current)
        except SmRefused as error:
            left, again = left - 1, parts.observer.observe_fabric_again(site)
            if not left or not (error.changed or again):
                raise
            log.warning("%s; reading what is in force again, and planning again", error)
            site, current = again or site, replace(current, in_force=None, read_from=None)


def _steps(
    parts: Parts, entry: HistoryEntry, site: Observation, current: Current
) -> tuple[Current, Outcome]:
    reason, transit, updates = entry.reason, parts.transit, parts.updates
    # Plan. The number is above all that the manager, the state or the peer has had.
    state, last = current.state, _start(parts, current, site)
    heard = parts.manager.status().highest_generation
    heard = max(heard, peer_generation(parts.config.agent.state_dir))
    number = 1 + max(heard, state.generation if state else 0)
    shelter = None if reason is Reason.AMENDED else current.shelter
    in_force = current.in_force.routes if current.in_force else None
    capped = None if reason in REPAIRS else in_force
    plan = parts.planner.plan(number, site.fabric, site.mix, last, shelter, capped)
    if why := parts.pacing.held_back(reason, site, entry.before, plan):
        return current, Outcome(Result.LATER, _judged(plan, current), why)
    # Examine the transition from what is in force.
    before = transit.before(plan.fabric, current.in_force)
    kept = updates.keep_shelter(plan, before)
    examined = transit.examine(kept, before)
    # Choose the method.
    choice = updates.choose(
        examined, before, site.records, urgent=reason in REPAIRS, shelter_owed=kept is not plan
    )
    if choice.how is UpdateMethod.WAIT:
        return current, Outcome(Result.LATER, examined, choice.why)
    # Bring it into force, and record what was read back.
    parts.first_tables.keep(current, before, plan.fabric)
    with updates.under_way(choice, examined.generation):
        result = transit.bring(examined, before, whole=choice.whole)
    after = State.before_install(plan, parts.config.agent.engine, host_sets(site.records))
    phases = updates.pop_summary()
    current = replace(current, shelter=shelter)
    return parts.committer.record(
        current, result, after, entry, how=choice.how.value, why=choice.why, phases=phases
    )


def _start(parts: Parts, current: Current, site: Observation) -> Plan | None:
    """The plan to start from. After a restart, that is the one in force, if it was installed last
    and the fabric is the same; otherwise none. Raises `NotYet` while the manager is at work: once
    it is done, there may be routes to start from."""
    state = current.state
    if current.last or state is None or not parts.planner.starts_from(state.engine):
        return current.last
    try:
        known = parts.installed.know_plan(current, site.fabric, current.in_force)
    except NotYet:
        raise
    except SarError as error:
        log.info("starting from no routes: %s", error)
        return None
    return known.plan_in_force(site.fabric)


def _failed(parts: Parts, error: SarError, entry: HistoryEntry, site: Observation) -> Report:
    """Nothing was installed. `NotYet` is no failure: a later pass may find the manager done."""
    result = Result.LATER if isinstance(error, NotYet) else Result.FAILED
    if isinstance(error, NotSafe):
        parts.metrics.transitions.labels(error.transition.way.value).inc()
    parts.metrics.reroutes.labels(entry.reason.value, result.value).inc()
    if result is Result.FAILED:
        parts.backoff.failed(planning_basis(site))
        if isinstance(error, CheckFailed):
            parts.metrics.check_failures.inc()
        jobs, phases = len(site.records), parts.updates.pop_summary()
        parts.committer.decisions.add(entry, result, jobs=jobs, phases=phases, message=str(error))
    return Report(result, f"{entry.why}; {error}", entry.reason)


def _planned_before(current: Current, site: Observation) -> Measures | None:
    """Measures, under the jobs of now, of the plan that would be in force; None before the first,
    and on another fabric."""
    planned = current.planned
    if planned is None or planned.fabric_digest != site.fabric.digest:
        return None
    return planned.measured


def _replaced(current: Current, site: Observation) -> tuple[Routes | None, State | None]:
    """The tables that a plan would have replaced, of the plan before or those in force, and what
    they were made for; None where they are not known."""
    if current.planned and current.planned.fabric_digest == site.fabric.digest:
        return current.planned.routes, current.planned.made
    return current.in_force.routes if current.in_force else None, current.state


def _judged(plan: Plan, current: Current) -> Plan:
    """The plan with the verdict on the transition from the tables that were read."""
    return transition_to(plan, current.in_force.routes if current.in_force else None)
