"""The commands `rollback`, an older generation's tables under a new number, and `resume`."""

from __future__ import annotations

from functools import partial

from sar_agent.agent.build import Site
from sar_agent.agent.install_held import PATIENCE, ChosenTables, install_held
from sar_agent.agent.state import State, StateStore
from sar_agent.config.model import Config
from sar_agent.errors import InputError
from sar_agent.formats.conversion import file_to_routes
from sar_agent.util.lock_file import Lock


def rollback(
    config: Config, generation: int | None, hold_minutes: float | None, site: Site | None = None
) -> str:
    """Install `generation`, or else the one before the last; returns what was done, in words.
    `site`: instead of the configured one.

    Raises `InputError` where that generation is not kept, and as `install_held`.
    """

    def choose(site: Site, state: State | None) -> ChosenTables:
        kept = site.installed.generations
        number = _choose(state, kept.numbers(), generation)
        old = kept.read(number)
        words = f"the tables of generation {number}"
        return ChosenTables(old.engine, words, partial(file_to_routes, file=old))

    held = install_held(config, choose, "back to ", hold_minutes, site)
    return (
        f"{held.words} are in force again as generation {held.generation}, {held.entries} entries "
        f"changed; the agent leaves them {held.until}"
    )


def resume(config: Config) -> str:
    """End the hold of a rollback; returns what was done, in words. Raises `InputError` where the
    state cannot be read or saved."""
    with Lock(config.agent.state_dir, "pass.lock", PATIENCE):
        store = StateStore(config.agent.state_dir)
        state = store.load()
        if state is None or state.hold is None or not state.held:
            return "nothing is held"
        with store.room_for(state):  # a full disk is said, not kept in memory
            # The routes were made for none of the jobs of now, so that the agent plans again.
            update = {"hold": state.hold.ended(), "jobs": frozenset()}
            store.save(state.model_copy(update=update))
    return (
        f"generation {state.generation} is no longer held; the next pass plans for the jobs of now"
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
