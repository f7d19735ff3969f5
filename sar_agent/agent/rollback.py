"""The commands `rollback`, an older generation's tables under a new number, and `resume`.

Typed twice, `rollback` goes further back in time: the tables in force are then as old as the first
generation that had them, not as their number.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import numpy as np

from sar_agent.agent.build import Site
from sar_agent.agent.install_held import PATIENCE, ChosenTables, install_held
from sar_agent.agent.state import State, StateStore
from sar_agent.config.model import Config
from sar_agent.errors import InputError
from sar_agent.formats.conversion import file_to_routes
from sar_agent.install.generations import Generations
from sar_agent.util.lock_file import Lock
from sar_agent.util.plural import plural


def rollback(
    config: Config, generation: int | None, hold_minutes: float | None, site: Site | None = None
) -> str:
    """Install `generation`, or else the one before the tables in force; returns what was done, in
    words. `site`: instead of the configured one.

    Raises `InputError` where that generation is not kept, or it is not known which one is older,
    and as `install_held`.
    """

    def choose(site: Site, state: State | None) -> ChosenTables:
        kept = site.installed.generations
        number = _choose(state, kept, generation)
        old = kept.read(number)
        words = f"the tables of generation {number}"
        return ChosenTables(old.engine, words, partial(file_to_routes, file=old))

    held = install_held(config, choose, "back to ", hold_minutes, site)
    return (
        f"{held.words} are in force again as generation {held.generation}, "
        f"{plural(held.entries, 'entry', 'entries')} "
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


def _choose(state: State | None, kept: Generations, wanted: int | None) -> int:
    numbers = kept.numbers()
    known = ", ".join(map(str, numbers)) or "none"
    if wanted is not None and wanted not in numbers:
        raise InputError(f"generation {wanted} is not kept", remedy=f"kept are: {known}")
    if wanted is not None:
        return wanted
    what, last = "the last", state.generation if state else None
    if state and state.hold:  # a person chose these tables: what they replaced is not older
        last = next((n for n in numbers if n < state.generation and _same(kept, n, state)), None)
        if last is None:
            raise InputError(
                f"generation {state.generation} was put in force by hand, and no kept generation "
                "before it has the same tables: it is not known which one is older",
                remedy=f"name one with --to; kept are: {known}",
            )
        what = f"generation {last}, whose tables generation {state.generation} has"
    older = [n for n in numbers if last is None or n < last]
    if not older:
        raise InputError(
            f"there is no generation before {what}", remedy=f"--to names one; kept are: {known}"
        )
    return older[-1]


def _same(kept: Generations, number: int, state: State) -> bool:
    """Whether the generation has the tables of that of `state`. One that cannot be read has not."""
    with suppress(InputError):
        one, two = kept.read(number), kept.read(state.generation)
        names = ("switch_guids", "terminal_guids", "forwarding", "service_levels", "hop_lanes")
        return all(np.array_equal(getattr(one, name), getattr(two, name)) for name in names)
    return False
