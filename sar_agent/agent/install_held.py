"""Tables that a person chose, installed by proved steps and then held: `rollback` and `leave`.

The tables must pass the checks on the fabric as it is now. Then the agent leaves them alone until
`sar-agent resume` or, where a time was given, for that long; then it plans again. A fallback engine
in force (the held routes no longer fit) ends a hold at once.

The hold must outlive this process, so a disk that cannot take it refuses the install.
"""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Callable
from typing import NamedTuple

from sar_agent.agent.build import Site, build_committer, build_site, build_transit
from sar_agent.agent.current import Current
from sar_agent.agent.decide import Reason
from sar_agent.agent.history import HistoryEntry
from sar_agent.agent.peer import peer_generation
from sar_agent.agent.phased_updates import require_no_subscribers
from sar_agent.agent.state import SavedHold, State
from sar_agent.check.transition import Way
from sar_agent.config.model import Config
from sar_agent.errors import InputError, Unavailable
from sar_agent.fabric import Fabric
from sar_agent.install.plan import make_plan
from sar_agent.jobs.filter import host_sets
from sar_agent.routing.routes import Routes
from sar_agent.util.lock_file import Lock
from sar_agent.util.plural import plural

PATIENCE = 120.0
"""Seconds to wait for a pass that is under way."""


class ChosenTables(NamedTuple):
    """`engine` made them; `words` say what they are."""

    engine: str
    words: str
    on: Callable[[Fabric], Routes]
    """The tables on a fabric."""


class Held(NamedTuple):
    """What was done."""

    words: str
    """Which tables."""
    generation: int
    entries: int
    """Entries that changed."""
    until: str
    """How long the agent leaves them, in words."""


def install_held(
    config: Config,
    choose: Callable[[Site, State | None], ChosenTables],
    verb: str,
    hold_minutes: float | None = None,
    site: Site | None = None,
) -> Held:
    """`site`: instead of the configured one; `choose` gets it, and the state on disk. `verb` is
    put before the tables' words in the history.

    Raises `InputError` where the state cannot be saved, `CheckFailed` where the tables do not fit
    the fabric, `SarError` where the subnet manager refuses; then nothing has changed.
    """
    if config.agent.mode != "install":
        raise InputError(
            "in observe mode nothing is installed", remedy='set mode = "install" under [agent]'
        )
    with Lock(config.agent.state_dir, "pass.lock", PATIENCE):
        require_no_subscribers(config)
        site = site or build_site(config)
        state = site.installed.store.load()
        chosen = choose(site, state)
        until = (
            "until `sar-agent resume`"
            if hold_minutes is None
            else f"for {plural(f'{hold_minutes:g}', 'minute')}"
        )
        began = time.monotonic()
        site.manager.recover()
        observed = site.observer.observe()
        if observed.status is None:
            raise Unavailable(observed.status_problem)
        fabric = observed.fabric
        plan = make_plan(
            1
            + max(
                observed.status.highest_generation,
                state.generation if state else 0,
                peer_generation(config.agent.state_dir),
            ),
            fabric,
            observed.mix,
            chosen.on(fabric),
        )
        committer = build_committer(config, site, os.environ.get("SUDO_USER") or getpass.getuser())
        transit = build_transit(config, site.manager)
        current = Current(state=state, in_force=observed.in_force)
        current = committer.publisher.in_force(current, fabric, observed.mix)
        why = f"{verb}{chosen.words}, held {until}"
        entry = HistoryEntry(Reason.ROLLBACK, why, chosen.engine, current.measures, began)
        hold = SavedHold() if hold_minutes is None else SavedHold.lasting(60 * hold_minutes)
        # When a given time is over, all jobs are new, so that the agent plans again.
        jobs = host_sets(observed.records) if hold_minutes is None else frozenset()
        after = State.before_install(plan, config.agent.engine, jobs, hold)
        with site.installed.store.room_for(after):
            result = transit.install(plan, observed.in_force)
            staged = result.transition and result.transition.way is Way.STAGED
            committer.record(current, result, after, entry, how="staged" if staged else "direct")
    return Held(chosen.words, result.plan.generation, result.changed.entries, until)
