"""The first sentence of the report, and the number beside it.

It is the answer that a reader remembers, so it claims no more than was shown: time spent sending,
not run time. Where there is nothing to gain, the sentence says so and gives the reason.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from sar_lab.assess.host_ports import shared_hosts
from sar_lab.assess.rate import RatedRoutes, Ratings
from sar_lab.assess.site_data import SiteData

Kind = Literal["unknown", "inside", "adaptive", "unserved", "idle", "same", "little", "gain"]
LEAST, LITTLE = 0.01, 0.05
"""Shares of time: below the first there is no gain, below the second a little one."""
FULL = 1.0 + 1e-6


@dataclass(frozen=True)
class Judgement:
    """The sentence, its reason and its number."""

    kind: Kind
    sentence: str
    why: str
    """One or two sentences of reason."""
    saved: float
    """The share of the time spent sending that would be saved; never below 0."""

    def json(self) -> dict[str, Any]:
        return {**asdict(self), "percent": round(100 * self.saved, 1)}


def judge(given: SiteData, ratings: Ratings, adaptive: bool) -> Judgement:
    """`adaptive`: the site says that adaptive routing is in force."""
    nothing = "There is nothing to gain here."
    jobs = len(given.mix.jobs)
    if not given.jobs or all_unknown(given):
        return Judgement(
            "unknown", "No answer is possible: no job runs on this network.",
            "None of the jobs' nodes is in the fabric. Do both files belong to the same cluster, "
            "and do the hosts in the fabric have their Slurm names?"
            if given.jobs else "The list of jobs is empty.", 0.0,
        )  # fmt: skip
    if not jobs:
        return Judgement(
            "inside", nothing,
            f"None of the {given.jobs} jobs spans two switches, and inside one switch there is no "
            "choice of routes.", 0.0,
        )  # fmt: skip
    if ratings.after is None:
        return Judgement(
            "unserved", "No job-aware engine finds safe routes for this network.",
            "; ".join(f"{name}: {why}" for name, why in ratings.unserved), 0.0,
        )  # fmt: skip
    before, after = ratings.before, ratings.after
    saved = max(0.0, 1.0 - after.time / before.time)
    if adaptive:
        return Judgement(
            "adaptive",
            "With adaptive routing, the gain is known only for traffic that follows the tables.",
            f"Such traffic would spend up to {saved:.0%} less time being sent. For traffic that "
            "switches route packet by packet, this report cannot state a gain. The section on "
            "traffic that follows the tables lists both.", 0.0,
        )  # fmt: skip
    if before.measures.load_max <= FULL:
        return Judgement(
            "idle", nothing,
            "Even if every job sent at full speed to all its hosts at once, no link would be more "
            f"than {before.measures.load_max:.0%} full.", 0.0,
        )  # fmt: skip
    if saved < LEAST:
        bound = before.measures.lower_bound_load_max
        slower = after.time > before.time * (1 + LEAST)
        return Judgement(
            "same", nothing,
            (f"Routes made for the jobs would even be slower: {after.time:.2f} instead of "
             f"{before.time:.2f}." if slower else
             f"Jobs would finish sending less than {LEAST:.0%} sooner.")
            + _ports(given, ratings.before)
            + f" The fullest link carries {before.measures.load_max:.2f} times its capacity, and "
            f"no routing could bring that below {bound:.2f}.", 0.0,
        )  # fmt: skip
    amount = f"{saved:.0%} less time sending"
    if saved < LITTLE:
        return Judgement(
            "little", f"There is little to gain: your jobs would spend at most {amount}.",
            "That is hardly worth a change.", saved,
        )  # fmt: skip
    return Judgement(
        "gain", f"Your jobs would spend up to {amount}.",
        "Routes that take the running jobs into account keep jobs off each other's links.", saved,
    )  # fmt: skip


def _ports(given: SiteData, before: RatedRoutes) -> str:
    """A sentence for the case that jobs wait at the hosts' own cables; else empty."""
    hosts = shared_hosts(given.fabric, given.mix)
    if not hosts or max(before.ports) <= FULL:
        return ""
    return (
        f" {hosts} hosts run several jobs at once. These wait for each other at the host's own "
        "cable, whatever the routes."
    )


def all_unknown(given: SiteData) -> bool:
    """Whether jobs were given, but none of them has a host in this fabric."""
    if given.mix.jobs:
        return False
    lost = [left for left in given.left_out if "of which no host is in" in left.reason]
    total = given.placed.history.jobs if given.placed else given.jobs
    return any(left.count == total for left in lost)
