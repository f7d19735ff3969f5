"""A person takes a reroute back: an older generation's tables under a new number, and held.

The tables must pass the checks on the fabric as it is now. Then the agent leaves them alone: until
the multi-switch jobs change or, where a time was given, for that long; after a given time it plans
afresh. A fallback engine in force (the held routes fit no more) ends a hold at once.
"""

from __future__ import annotations

import getpass
import os
import time

from sar_agent.agent.decide import Reason
from sar_agent.agent.gather import Gatherer
from sar_agent.agent.history import History, Row, summary
from sar_agent.agent.reroute import next_generation
from sar_agent.agent.state import SavedHold, State, StateStore
from sar_agent.config.model import Config
from sar_agent.errors import InputError, Unavailable, Unserved
from sar_agent.five_phase.storage import CoordinatorStorage
from sar_agent.formats.conversion import file_to_routes
from sar_agent.install.generations import Generations
from sar_agent.install.levels import AssignedLevels
from sar_agent.install.plan import make_plan
from sar_agent.install.transit import Transit
from sar_agent.jobs.filter import host_sets
from sar_agent.jobs.mapping import mix_of_records
from sar_agent.opensm.plugin_client import PluginClient
from sar_agent.opensm.plugin_install import finish_or_restore
from sar_agent.util.lock_file import Lock

PATIENCE = 120.0


def rollback(config: Config, generation: int | None, hold_minutes: float | None) -> str:
    """Installs `generation`, or else the one before the last; returns what was done, in words.

    Raises `InputError` where there is no such generation, `CheckFailed` where it does not fit the
    fabric any more, `SarError` where OpenSM refuses; then nothing has changed.
    """
    if config.agent.mode != "install":
        raise InputError("in observe mode nothing is installed, so nothing can be taken back")
    start = time.monotonic()
    folder = config.agent.state_dir
    with Lock(folder, "pass.lock", PATIENCE):
        store, kept = StateStore(folder), Generations(folder, config.agent.generations_kept)
        _nobody_waits(config)
        state = store.load()
        number = _choose(state, kept.numbers(), generation)
        bridge = PluginClient(config.opensm.plugin_socket, config.opensm.load_deadline_seconds)
        finish_or_restore(bridge, config.agent.routes_path)
        gatherer = Gatherer(config, bridge)
        look = gatherer.look()
        if look.status is None:
            raise Unavailable(look.status_problem)
        old = kept.read(number)
        fresh = next_generation(config, look.status, state)
        mix = mix_of_records(look.fabric, look.records).mix
        plan = make_plan(fresh, look.fabric, mix, file_to_routes(look.fabric, old))
        levels = AssignedLevels(folder)
        transit = Transit(
            bridge, config.agent.routes_path, levels=levels, tries=config.agent.plan_attempts
        )
        arrived = transit.commit(plan, transit.bring)
        plan, fresh = arrived.plan, arrived.plan.generation
        now = host_sets(look.records)
        timed = hold_minutes is not None
        hold = SavedHold(jobs=now)
        if hold_minutes is not None:
            hold = SavedHold.lasting(now, 60 * hold_minutes)
        store.save(
            State(
                generation=fresh,
                engine=config.agent.engine,
                jobs=frozenset() if timed else now,  # when the time is over, all jobs are new
                fabric_digest=look.fabric.digest.hex(),
                installed_at=time.time(),
                hold=hold,
            )
        )
        kept.add(plan.generation, config.agent.routes_path)
        measures = summary(plan.measures)
        changed = arrived.changed.entries
        words = "until the jobs change" if hold_minutes is None else f"for {hold_minutes:g} minutes"
        History(folder).add(
            Row(
                at=time.time(),
                who=os.environ.get("SUDO_USER") or getpass.getuser(),
                reason=Reason.ROLLBACK.value,
                why=f"back to the tables of generation {number}, held {words}",
                result="installed",
                message="",
                engine=old.engine,
                generation=fresh,
                jobs=len(mix.jobs),
                seconds=time.monotonic() - start,
                entries_changed=changed,
                blocks_changed=arrived.changed.blocks,
                transition=plan.transition.words if plan.transition else "",
                predicted=measures,
                achieved=measures,
            )
        )
    return (
        f"the tables of generation {number} are in force again as generation {fresh}, {changed} "
        f"entries changed; the agent leaves them {words}"
    )


def _nobody_waits(config: Config) -> None:
    """Tables must not change under those who subscribed; only the agent that hears them can move
    them."""
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
