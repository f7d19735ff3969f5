"""The rollback command: an older generation's tables under a new number, and held.

The tables must pass the checks on the fabric as it is now. Then the agent leaves them alone until
`sar-agent resume` or, where a time was given, for that long; then it plans again. A fallback engine
in force (the held routes no longer fit) ends a hold at once.

The hold must outlive this process, so a disk that cannot take it refuses the rollback.
"""

from __future__ import annotations

import getpass
import os
from dataclasses import replace

from sar_agent.agent.build import Site, build_committer, build_site, build_transit
from sar_agent.agent.current import Current
from sar_agent.agent.decide import Decision, Reason
from sar_agent.agent.history import HistoryEntry
from sar_agent.agent.state import SavedHold, State, StateStore
from sar_agent.check.transition import Way
from sar_agent.config.model import Config
from sar_agent.errors import InputError, Unavailable, Unserved
from sar_agent.five_phase.storage import CoordinatorStorage
from sar_agent.formats.conversion import file_to_routes
from sar_agent.install.plan import make_plan
from sar_agent.jobs.filter import host_sets
from sar_agent.util.lock_file import Lock

PATIENCE = 120.0
"""Seconds to wait for a pass that is under way."""


def rollback(
    config: Config, generation: int | None, hold_minutes: float | None, site: Site | None = None
) -> str:
    """Install `generation`, or else the one before the last; returns what was done, in words.
    `site`: instead of the configured one.

    Raises `InputError` where that generation is not kept or the state cannot be saved,
    `CheckFailed` where it does not fit the fabric any more, `SarError` where the subnet manager
    refuses; then nothing has changed.
    """
    if config.agent.mode != "install":
        raise InputError("in observe mode nothing is installed, so there is nothing to roll back")
    with Lock(config.agent.state_dir, "pass.lock", PATIENCE):
        _require_no_subscribers(config)
        site = site or build_site(config)
        kept = site.installed.generations
        state = site.installed.store.load()
        number = _choose(state, kept.numbers(), generation)
        words = (
            "until `sar-agent resume`" if hold_minutes is None else f"for {hold_minutes:g} minutes"
        )
        why = f"back to the tables of generation {number}, held {words}"
        old = kept.read(number)
        entry = HistoryEntry(Decision(Reason.ROLLBACK, why), old.engine, None)
        site.manager.recover()
        observed = site.observer.observe()
        if observed.status is None:
            raise Unavailable(observed.status_problem)
        fabric = observed.fabric
        plan = make_plan(
            1 + max(observed.status.highest_generation, state.generation if state else 0),
            fabric,
            observed.mix,
            file_to_routes(fabric, old),
        )
        committer = build_committer(config, site, os.environ.get("SUDO_USER") or getpass.getuser())
        transit = build_transit(config, site.manager)
        current = Current(state=state, in_force=observed.in_force)
        current = committer.publisher.in_force(current, fabric, observed.mix)
        entry = replace(entry, before=current.measures)

        hold = SavedHold() if hold_minutes is None else SavedHold.lasting(60 * hold_minutes)
        after = State(
            generation=plan.generation,
            engine=config.agent.engine,
            # When a given time is over, all jobs are new, so that the agent plans again.
            jobs=host_sets(observed.records) if hold_minutes is None else frozenset(),
            fabric_digest=fabric.digest.hex(),
            installed_at=0.0,
            hold=hold,
            identity="",
        )
        with committer.room_for(after):
            result = transit.install(plan, observed.in_force)
            staged = result.transition and result.transition.way is Way.STAGED
            committer.record(current, result, after, entry, how="staged" if staged else "direct")
    return (
        f"the tables of generation {number} are in force again as generation "
        f"{result.plan.generation}, {result.changed.entries} entries changed; the agent leaves "
        f"them {words}"
    )


def resume(config: Config) -> str:
    """End the hold of a rollback; returns what was done, in words. Raises `InputError` where the
    state cannot be read or saved."""
    with Lock(config.agent.state_dir, "pass.lock", PATIENCE):
        store = StateStore(config.agent.state_dir)
        state = store.load()
        if state is None or state.hold is None:
            return "nothing is held"
        store.reserve(state)  # a full disk is said, not kept in memory
        try:
            # All jobs are new now, so that the agent plans again.
            store.save(state.model_copy(update={"hold": None, "jobs": frozenset()}))
        finally:
            store.release()
    return (
        f"generation {state.generation} is no longer held; the next pass plans for the jobs of now"
    )


def _require_no_subscribers(config: Config) -> None:
    """Tables must not change under subscribers, and only the agent that hears them can move
    them. Raises `Unserved`."""
    saved = CoordinatorStorage(config.agent.state_dir).load()
    if config.update.mode == "five-phase" and saved and saved.members:
        raise Unserved(
            f"{len(saved.members)} subscribers have been promised that tables do not change under "
            'them, and this command cannot move them; stop their jobs, or set update.mode = "fast"'
        )


def _choose(state: State | None, numbers: list[int], wanted: int | None) -> int:
    known = ", ".join(map(str, numbers)) or "none"
    if wanted is not None and wanted not in numbers:
        raise InputError(f"generation {wanted} is not kept", remedy=f"kept are: {known}")
    if wanted is None:
        older = [n for n in numbers if state is None or n < state.generation]
        if not older:
            raise InputError("there is no generation before the last", remedy=f"kept are: {known}")
        wanted = older[-1]
    return wanted
