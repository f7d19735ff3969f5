"""The first sentence of the report, and the numbers beside it.

It is the answer that a reader remembers, so it claims no more than was shown: time spent sending,
not run time, and "up to" where the times are upper bounds. What programs send is not known, so the
sentence spans all collectives. Where one gets slower, the sentence begins with it. Where there is
nothing to gain, the sentence says so and gives the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any, Literal

import numpy as np

from sar_agent.demand.collectives import AT_ONCE, COLLECTIVES, PAIRWISE, RING
from sar_agent.demand.endpoints import rail_note
from sar_agent.demand.rails import rails_of
from sar_agent.fabric import hostnames
from sar_agent.fabric.notes import repeated_notes
from sar_agent.util.plural import plural
from sar_lab.assess.host_ports import shared_hosts
from sar_lab.assess.over_time import RatingsOverTime
from sar_lab.assess.rate import RatedRoutes, Ratings
from sar_lab.assess.site_data import SiteData, unknown_hosts
from sar_lab.assess.traffic_classes import is_fast

Kind = Literal[
    "unknown", "inside", "adaptive", "unserved", "idle", "same", "little", "gain", "mixed", "worse"
]
LEAST, LITTLE = 0.01, 0.05
"""Shares of time: below the first there is no gain, below the second a little one."""
FULL = 1.0 + 1e-6
SHOWN = 3
"""Notes of the fabric before the reason."""
SENDING = {
    AT_ONCE: "send all messages at once",
    PAIRWISE: "send one message at a time",
    RING: "send in a ring",
    "bidirectional-ring": "send in both directions of a ring",
    "recursive-doubling": "use recursive doubling",
    "bruck": "use Bruck's algorithm",
    "double-tree": "use a double binary tree",
    "halo2d": "exchange halos in two dimensions",
    "halo3d": "exchange halos in three dimensions",
}
"""What programs do, by collective."""
STATIC = (
    "This holds only where adaptive routing is off: switches of this speed can choose the way of "
    "each packet, and new tables then change little."
)


@dataclass(frozen=True)
class Change:
    """Mean times of sending, in multiples of the time alone."""

    before: float
    after: float

    @property
    def saved(self) -> float:
        """The share of the time that is saved; below 0 where it takes longer."""
        return 1.0 - self.after / self.before

    @property
    def longer(self) -> float:
        """The share of the time by which it takes longer; below 0 where it is saved."""
        return self.after / self.before - 1.0

    def json(self) -> dict[str, float]:
        return {**asdict(self), "saved": self.saved}


@dataclass(frozen=True)
class Judgement:
    """The sentence, its reason and its numbers."""

    kind: Kind
    sentence: str
    why: str
    """One or two sentences of reason."""
    saved: float
    """The share of the time spent sending that would be saved with all messages at once; never
    below 0."""
    changes: Mapping[str, Change] = field(default_factory=dict)
    """By collective, a key of `COLLECTIVES`; empty without routes after or without jobs. Over a
    history, all messages at once and a pairwise exchange alone."""

    @property
    def at_once(self) -> Change | None:
        """All messages at once."""
        return self.changes.get(AT_ONCE)

    @property
    def one_at_a_time(self) -> Change | None:
        """One message at a time: a pairwise exchange."""
        return self.changes.get(PAIRWISE)

    def json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "sentence": self.sentence,
            "why": self.why,
            "saved": self.saved,
            "percent": round(100 * self.saved, 1),
            "all_messages_at_once": self.at_once and self.at_once.json(),
            "one_message_at_a_time": self.one_at_a_time and self.one_at_a_time.json(),
            "collectives": {word: change.json() for word, change in self.changes.items()},
        }


def judge(
    given: SiteData, ratings: Ratings, adaptive: bool, course: RatingsOverTime | None = None
) -> Judgement:
    """`adaptive`: the site says that adaptive routing is in force. `course`: where there is a
    history, the judgement is of all its moments. The reason begins with what makes the verdict
    uncertain."""
    found = _judge(given, ratings, adaptive, course)
    notes = [*repeated_notes(given.fabric)[:SHOWN]]
    rails = rail_note(given.fabric, given.mix)
    if rails and found.kind != "unknown":
        notes.append(rails)
    doubts = "".join(f"{note}. " for note in notes)
    if found.at_once and not adaptive and is_fast(given.fabric):
        doubts = f"{STATIC} {doubts}"
    return replace(found, why=doubts + found.why)


def _judge(
    given: SiteData, ratings: Ratings, adaptive: bool, course: RatingsOverTime | None
) -> Judgement:
    nothing = "There is nothing to gain here."
    jobs = len(given.mix.whole_jobs)
    if not given.jobs:
        what = (
            f"{plural(given.pending, 'job is', 'jobs are')} pending, and none runs."
            if given.pending
            else ("No job in the list is running.")
        )
        return Judgement(
            "unknown", "No answer is possible: no job runs on this network.", what, 0.0
        )
    if lost := unknown_hosts(given):
        fabric = given.fabric
        compute = np.flatnonzero(fabric.terminal_kind == hostnames.Kind.COMPUTE)
        known = sorted({fabric.terminal_host[t] for t in compute})[:3]
        return Judgement(
            "unknown",
            f"No answer is possible: {lost.count} of {plural(given.hosts, 'host')} of the jobs "
            "are not in "
            "the fabric.",
            f"The jobs name {', '.join(lost.examples[:3])}; the fabric has {', '.join(known)}. Are "
            "both files of one cluster and one time, and do the hosts in the fabric have their "
            "Slurm names?",
            0.0,
        )
    if not jobs:
        return Judgement(
            "inside", nothing,
            f"None of the {plural(given.jobs, 'job')} spans two switches"
            f"{' on a rail' * (rails_of(given.fabric) is not None)}, and inside one switch there "
            "is no choice of routes.", 0.0,
        )  # fmt: skip
    if ratings.after is None:
        return Judgement(
            "unserved", "No job-aware engine finds safe routes for this network.",
            "; ".join(f"{name}: {why}" for name, why in ratings.unserved), 0.0,
        )  # fmt: skip
    before, after = ratings.before, ratings.after
    changes = _changes(before, after, course)
    whose = "synthetic jobs on this network" if given.synthetic else "your jobs"
    period = " over the record" if course else ""
    most, least = (pick(changes.values(), key=lambda each: each.saved) for pick in (max, min))
    bounded = before.simulated is None or course is not None
    slower = _slower(before, after)

    def told(kind: Kind, sentence: str, why: str, saved: float = 0.0) -> Judgement:
        return Judgement(kind, sentence, why, saved, changes)

    if adaptive:
        return told(
            "adaptive",
            "With adaptive routing, the gain is known only for traffic that follows the tables.",
            "The times given here are for such traffic. For traffic that switches route packet by "
            "packet, this report cannot state a gain. The section on traffic that follows the "
            "tables lists both.",
        )
    if least.saved <= -LEAST:
        slow = next(word for word, change in changes.items() if change is least)
        first = (
            f"Programs that {SENDING[slow]} would take {least.longer:.0%} longer to send{period}"
        )
        why = (
            "Routes made for the jobs spread all their messages evenly. The messages of one phase "
            f"may still meet on a link, more often than before.{slower}"
        )
        if most.saved >= LEAST:
            fast = next(word for word, change in changes.items() if change is most)
            share = span_words(most.saved, most.saved, bounded)
            return told(
                "mixed",
                f"{first}; programs that {SENDING[fast]} would spend {share} less time sending.",
                why,
                max(0.0, changes[AT_ONCE].saved),
            )
        return told("worse", f"{first}; no others would gain.", why)
    if most.saved < LEAST:
        full = before.measures.load_max
        if full <= FULL:
            return told(
                "idle", nothing,
                "Even if every job sent at full speed to all its hosts at once, no link would be "
                f"more than {full:.0%} full, and with one message at a time, jobs would finish "
                f"less than {LEAST:.0%} sooner.",
            )  # fmt: skip
        bound = before.measures.lower_bound_load_max
        return told(
            "same", nothing,
            f"Jobs would finish sending less than {LEAST:.0%} sooner, in whatever collective."
            f"{slower}" + _ports(given, ratings.before)
            + f" The fullest link carries {full:.2f} times its capacity, and no routing could "
            f"bring that below {bound:.2f}.",
        )  # fmt: skip
    saved = max(0.0, changes[AT_ONCE].saved)
    span = span_words(least.saved, most.saved, bounded)
    if most.saved < LITTLE:
        return told(
            "little",
            f"There is little to gain: {whose} would spend {span} less time sending{period}.",
            f"That is hardly worth a change.{slower}",
            saved,
        )
    return told(
        "gain",
        f"{whose[0].upper()}{whose[1:]} would spend {span} less time sending{period}.",
        "Routes made for the running jobs lead some of their messages around the fullest links."
        + slower,
        saved,
    )


def _changes(
    before: RatedRoutes, after: RatedRoutes, course: RatingsOverTime | None
) -> dict[str, Change]:
    """By collective: of the moment, or the mean over those of a history."""
    if course:
        sides = course.before, course.after
        return {
            AT_ONCE: Change(*(fmean(moment.time for moment in side) for side in sides)),
            PAIRWISE: Change(*(fmean(moment.phase_time for moment in side) for side in sides)),
        }
    return {word: Change(before.mean_time(word), after.mean_time(word)) for word in COLLECTIVES}


def span_words(least: float, most: float, bounded: bool = False) -> str:
    """`4 to 22%`, or `22%` where both are the same; less than nothing is shown as 0. `up to 22%`
    where the numbers are upper bounds."""
    low, high = f"{max(0.0, least):.0%}", f"{most:.0%}"
    if bounded:
        return f"up to {high}"
    return high if low == high else f"{low[:-1]} to {high}"


def _slower(before: RatedRoutes, after: RatedRoutes) -> str:
    """A sentence for the jobs that would take longer, by collective; empty without any."""
    found: list[str] = []
    for word, name in COLLECTIVES.items():
        sides = before.job_times(word), after.job_times(word)
        longer = [b / a - 1 for a, b in zip(*sides, strict=True)]
        if count := sum(share >= LEAST for share in longer):
            most = f"{'' if found else 'by up to '}{max(longer):.0%}"
            found.append(f"{name} {count} ({most})")
    if not found:
        return ""
    return f" Of {plural(len(longer), 'job')}, some would take longer: {'; '.join(found)}."


def _ports(given: SiteData, before: RatedRoutes) -> str:
    """A sentence for the case that jobs wait at the hosts' own cables; else empty."""
    hosts = shared_hosts(given.fabric, given.mix)
    if not hosts or max(before.ports) <= FULL:
        return ""
    return (
        f" {plural(hosts, 'host runs', 'hosts run')} several jobs at once. These wait for each "
        "other at the host's own "
        "cable, whatever the routes."
    )
