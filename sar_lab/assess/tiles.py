"""The tiles under the verdict: collectives, both kinds of all-to-all, and the fullest link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sar_agent.demand.collectives import COLLECTIVES
from sar_agent.quality.ring_messages import ring_sentence
from sar_agent.util.plural import plural
from sar_lab.assess.assessment import Assessment
from sar_lab.assess.contention_chart import ContentionRow
from sar_lab.assess.rate import RatedRoutes

SAME = 0.01
"""Shares of time below this count as no difference."""
RING, HALO = "ring", "halo2d"


class Tile(NamedTuple):
    """One number before and after, and what it means."""

    title: str
    before: str
    after: str
    verdict: str
    """`12% less time`; empty where the number is no time."""
    words: str


def tiles_of(assessment: Assessment) -> list[Tile]:
    """Empty where no routes are proposed, or no job spans switches."""
    before, after, judged = (
        assessment.ratings.before,
        assessment.ratings.after,
        assessment.judgement,
    )
    if after is None or judged.at_once is None or judged.one_at_a_time is None:
        return []
    course = assessment.course
    of = (
        f"; the mean of {plural(len(course.times), 'moment')}, and the jobs of one of them"
        if course
        else ""
    )
    fullest = before.measures.load_max, after.measures.load_max
    bound = before.measures.lower_bound_load_max
    return [
        _collective("Ring", "Each host sends to the next one: NCCL’s and MPI’s large all-reduce",
                    RING, before, after),
        _collective("Halo", "Each host sends to its neighbours on a grid, one after the other",
                    HALO, before, after),
        _times("All messages at once", f"An all-to-all whose messages are posted together{of}",
               judged.at_once.before, judged.at_once.after, before.times, after.times),
        _times("One message at a time", f"A pairwise all-to-all, phase after phase{of}",
               judged.one_at_a_time.before, judged.one_at_a_time.after,
               before.phase_times, after.phase_times),
        Tile("Fullest link", f"{fullest[0]:.2f}", f"{fullest[1]:.2f}", "",
             "What the fullest link would carry while all jobs send all their messages at once, "
             f"divided by what it can carry. No routing can bring it below {bound:.2f}."),
    ]  # fmt: skip


def rings_of(assessment: Assessment) -> str:
    """The sentence on rings that meet; empty where no job spans switches."""
    after = assessment.ratings.after
    if not assessment.judgement.changes:
        return ""
    return ring_sentence(assessment.ratings.before.measures, after.measures if after else None)


def contention_rows(assessment: Assessment) -> list[ContentionRow]:
    """Each collective, for the picture."""
    before, after = assessment.ratings.before, assessment.ratings.after
    if not assessment.given.mix.jobs:
        return []
    return [
        ContentionRow(
            title[0].upper() + title[1:],
            before.job_times(word),
            after.job_times(word) if after else (),
            [side.mean_time(word) for side in (before, after) if side],
        )
        for word, title in COLLECTIVES.items()
    ]


def _collective(title: str, what: str, word: str, before: RatedRoutes, after: RatedRoutes) -> Tile:
    old, new = before.job_times(word), after.job_times(word)
    meet = (int((np.asarray(side) > 1 + SAME).sum()) for side in (old, new))
    words = "Messages of {} → {} of {} meet others on a link.".format(
        *meet, plural(len(old), "job")
    )
    change = before.mean_time(word), after.mean_time(word)
    return _times(title, what, *change, old, new, words)


def _times(
    title: str,
    what: str,
    before: float,
    after: float,
    old: Sequence[float],
    new: Sequence[float],
    more: str = "",
) -> Tile:
    saved, slower = 1 - after / before, after / before - 1
    verdict = (
        f"Less than {SAME:.0%} of a difference"
        if abs(saved) < SAME
        else f"{saved:.0%} less time"
        if saved > 0
        else f"{slower:.0%} longer"
    )
    change = [1 - b / a for a, b in zip(old, new, strict=True)]
    gain, lose = sum(s > SAME for s in change), sum(s < -SAME for s in change)
    slowest = f"Slowest job: {max(old):.2f}× → {max(new):.2f}×."
    counts = (
        f"{gain} of {plural(len(change), 'job')} would be faster, {len(change) - gain - lose} "
        "the same, "
        f"{lose} slower."
    )
    return Tile(
        title,
        f"{before:.2f}×",
        f"{after:.2f}×",
        verdict,
        " ".join(filter(None, (f"{what}.", more, slowest, counts))),
    )
