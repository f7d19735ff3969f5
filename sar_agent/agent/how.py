"""How a plan comes into force while jobs run: a pure function of what is known.

What is kept for whom is told in docs/safety.md. In short: `fast` needs a proof, `five-phase` moves
those who subscribed out of the way, `window` waits until nobody minds.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sar_agent.check.transition import Transition, Way
from sar_agent.config_update import UpdateConfig


class How(StrEnum):
    """The values are labels of a metric, and stand in the history."""

    DIRECT = "direct"
    STAGED = "staged"
    FIVE_PHASE = "five-phase"
    WAIT = "wait"
    REFUSE = "refuse"


@dataclass(frozen=True)
class Site:
    """Whom it meets. Jobs are multi-switch jobs."""

    jobs: int = 0
    subscribers: int = 0
    uncovered: int = 0
    """Jobs of which nobody subscribed."""
    on_shelter: int = 0
    """Subscribers that use LID offset 1."""
    base_changes: bool = True
    shelter_changes: bool = False
    entries: int = 0
    """Forwarding-table entries that change."""
    urgent: bool = False
    """OpenSM's own routes are in force, or the fabric is another: waiting mends nothing."""
    obstacle: str = ""
    """Why there can be no five-phase update."""
    known_in: float = 0.0
    """Seconds until it is known who has subscribed."""


@dataclass(frozen=True)
class Choice:
    """`why` is a sentence. `whole`: in one step, whatever the verdict on the transition."""

    how: How
    why: str
    whole: bool = False


def how_to_install(
    config: UpdateConfig, transition: Transition | None, site: Site, now: datetime
) -> Choice:
    """`transition` is the verdict on tables in force and plan, sent switch by switch; None where
    it is not known what is in force, so that nothing can be proved of it. `now` is local time."""
    plain = _plain(config, transition, site)
    if config.mode == "window":
        return _window(config, plain, site, now)
    if config.mode == "five-phase":
        return _five_phase(config, plain, site)
    return plain or _refuse(config, transition, site)


def _plain(config: UpdateConfig, transition: Transition | None, site: Site) -> Choice | None:
    """Without moving anybody: direct, or staged."""
    if config.max_changed_entries and site.jobs and site.entries > config.max_changed_entries:
        return None
    if transition is None:
        return Choice(How.DIRECT, "what is in force is not known")
    if transition.way in (Way.SAME, Way.DIRECT, Way.UNPROVED):
        return Choice(How.DIRECT, transition.words)
    return Choice(How.STAGED, transition.words) if transition.proved else None


def _refuse(config: UpdateConfig, transition: Transition | None, site: Site) -> Choice:
    if transition is None or transition.way is not Way.UNSAFE:
        return Choice(
            How.REFUSE,
            f"{site.entries} entries would change and update.max_changed_entries is "
            f"{config.max_changed_entries}; raise it, or set update.mode to another",
        )
    return Choice(
        How.REFUSE,
        f"{transition.words}; the routes in force stay, unless update.mode is made "
        '"five-phase" or "window"',
    )


def _window(config: UpdateConfig, plain: Choice | None, site: Site, now: datetime) -> Choice:
    if not site.jobs:
        return plain or Choice(How.DIRECT, "no multi-switch job runs", whole=True)
    if config.in_window(now):
        return plain or Choice(How.DIRECT, "a window is open", whole=True)
    if site.urgent and plain:
        return plain
    opens = f"a window opens ({', '.join(config.windows)})" if config.windows else ""
    until = " or ".join(filter(None, ["no multi-switch job runs", opens]))
    return Choice(How.WAIT, f"waiting until {until}")


def _five_phase(config: UpdateConfig, plain: Choice | None, site: Site) -> Choice:
    proved = plain is not None
    if not site.base_changes:
        if site.shelter_changes and site.on_shelter:
            many = f"{site.on_shelter} subscribers are"
            return Choice(How.WAIT, f"{many} on LID offset 1, whose tables would change")
        why = "nobody who subscribed uses what changes"
        return plain or Choice(How.DIRECT, why, whole=True)
    if site.known_in > 0 and not site.urgent:
        return Choice(
            How.WAIT,
            "nothing was saved of who has subscribed, so they are waited for "
            f"{site.known_in:.0f} s",
        )
    if plain and (config.direct_when_safe or not site.subscribers):
        return plain
    if site.uncovered and not proved and config.unsubscribed == "refuse":
        return Choice(
            How.REFUSE,
            f"old and new tables must not be mixed, and of {site.uncovered} multi-switch jobs "
            'nobody has subscribed; set update.unsubscribed = "accept" to install all the same',
        )
    if not site.subscribers:
        return Choice(How.DIRECT, "nobody has subscribed", whole=True)
    if not site.obstacle:
        why = f"{site.subscribers} subscribers are moved meanwhile"
        return Choice(How.FIVE_PHASE, why, whole=True)
    if site.urgent and plain:
        return plain
    return Choice(How.REFUSE, f"no five-phase update: {site.obstacle}")
