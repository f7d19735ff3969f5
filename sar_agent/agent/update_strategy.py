"""How a plan comes into force while jobs run: a pure function of what is known.

docs/safety.md says what each mode guarantees. In short: `fast` requires a proof; `five-phase`
requires the same proof and moves the connections of subscribers to LID offset 1 meanwhile, so that
their packets stay in order; `window` waits until no multi-switch job runs or a window is open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from sar_agent.check.transition import Transition, Way
from sar_agent.config.update import UpdateConfig
from sar_agent.util.plural import plural


class UpdateMethod(StrEnum):
    """The values are labels of a metric and columns of the history."""

    DIRECT = "direct"
    STAGED = "staged"
    FIVE_PHASE = "five-phase"
    WAIT = "wait"
    REFUSE = "refuse"


@dataclass(frozen=True)
class UpdateContext:
    """What an update would affect. Jobs are multi-switch jobs."""

    jobs: int = 0
    subscribers: int = 0
    uncovered: int = 0
    """Jobs without subscribers, or whose subscribers are no longer waited for."""
    on_shelter: int = 0
    """Subscribers that use LID offset 1."""
    base_changes: bool = True
    shelter_changes: bool = False
    entries: int = 0
    """Forwarding-table entries that change."""
    urgent: bool = False
    """OpenSM's own routes are in force, or the fabric has changed: waiting repairs nothing."""
    obstacle: str = ""
    """Why there can be no five-phase update."""
    known_in: float = 0.0
    """Seconds until all subscribers are known."""


@dataclass(frozen=True)
class UpdateChoice:
    """`why` is a sentence. `whole`: in one step, although mixtures may do harm; only an
    administrator's window allows that."""

    how: UpdateMethod
    why: str
    whole: bool = False
    urgent: bool = False
    """Waiting repairs nothing."""


def choose_update(
    config: UpdateConfig, transition: Transition | None, site: UpdateContext, now: datetime
) -> UpdateChoice:
    """`transition` is the verdict on the plan, sent switch by switch, over the tables in force;
    None where those are not known, so that nothing can be proved. `now` is local time."""
    proved = _proved(transition)
    if config.mode == "window":
        choice = _window(config, transition, proved, site, now)
    elif not proved:
        choice = _unsafe(transition)
    elif config.mode == "five-phase":
        choice = _five_phase(config, proved, site)
    else:
        choice = _capped(config, site) or proved
    return replace(choice, urgent=site.urgent)


def _proved(transition: Transition | None) -> UpdateChoice | None:
    """Direct or staged, as proved; None where there is no proof."""
    if transition is None:
        return UpdateChoice(UpdateMethod.DIRECT, "what is in force is not known")
    if transition.way in (Way.SAME, Way.DIRECT, Way.UNPROVED):
        return UpdateChoice(UpdateMethod.DIRECT, transition.words)
    return UpdateChoice(UpdateMethod.STAGED, transition.words) if transition.proved else None


def _unsafe(transition: Transition | None) -> UpdateChoice:
    assert transition
    window = ", unless a window of the administrator's opens (update.mode)"
    harm = window if transition.way is Way.UNSAFE else ""
    return UpdateChoice(UpdateMethod.REFUSE, f"{transition.words}; the routes in force stay{harm}")


def _capped(config: UpdateConfig, site: UpdateContext) -> UpdateChoice | None:
    """A refusal of what may wait, if it changes too much under jobs."""
    most = config.max_changed_entries
    if site.urgent or not (most and site.jobs and site.entries > most):
        return None
    return UpdateChoice(
        UpdateMethod.REFUSE,
        f"{plural(site.entries, 'entry', 'entries')} would change and update.max_changed_entries "
        "is "
        f"{config.max_changed_entries}; raise it, or set update.mode to another",
    )


def _window(
    config: UpdateConfig,
    transition: Transition | None,
    proved: UpdateChoice | None,
    site: UpdateContext,
    now: datetime,
) -> UpdateChoice:
    if not site.jobs or config.in_window(now):
        why = "a window is open" if site.jobs else "no multi-switch job runs"
        if proved or (transition and transition.way is Way.UNSAFE):
            return proved or UpdateChoice(UpdateMethod.DIRECT, why, whole=True)
        return _unsafe(transition)  # the tables that would be mixed are not known well enough
    if site.urgent and proved:
        return proved
    opens = f"a window opens ({', '.join(config.windows)})" if config.windows else ""
    until = " or ".join(filter(None, ["no multi-switch job runs", opens]))
    return UpdateChoice(UpdateMethod.WAIT, f"waiting until {until}")


def _five_phase(config: UpdateConfig, proved: UpdateChoice, site: UpdateContext) -> UpdateChoice:
    """Phases only add an order to a proved plan. A subscriber that acknowledges, or pretends to,
    cannot have tables installed that could block the packets of others."""
    if not site.base_changes:
        if site.shelter_changes and site.on_shelter:
            why = f"{site.on_shelter} subscribers are on LID offset 1, whose tables would change"
            return UpdateChoice(UpdateMethod.WAIT, why)
        return proved
    if site.known_in > 0 and not site.urgent:
        return UpdateChoice(
            UpdateMethod.WAIT,
            "nothing was saved of who has subscribed, so they are waited for "
            f"{site.known_in:.0f} s",
        )
    plain = _capped(config, site) or proved
    if not site.subscribers:
        return plain
    if not site.obstacle:
        why = f"{site.subscribers} subscribers are moved meanwhile"
        if site.uncovered:
            why += f", packets of {site.uncovered} other multi-switch jobs may overtake each other"
        return UpdateChoice(UpdateMethod.FIVE_PHASE, why)
    if site.urgent:
        return proved
    return UpdateChoice(UpdateMethod.REFUSE, f"no five-phase update: {site.obstacle}")
