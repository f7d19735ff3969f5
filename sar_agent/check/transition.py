"""May the routes in force be replaced by these, switch by switch, while packets travel?

After sar-2016, Definition 6. `examine` proves that every mixture of the two is safe, or says what
could happen, and then looks for a way round it (`staged.py`): intermediate tables, each of which
may be mixed with the next; or as much of the new routes as can be reached that way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from sar_agent.check.mixer import Mixer, Tables
from sar_agent.check.mixture import CIRCLE, FINE
from sar_agent.check.proof import Proved
from sar_agent.check.staged import Steps, find_steps
from sar_agent.check.telling import hazard, loop, lost
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8
from sar_agent.routing.routes import Routes


class Way(StrEnum):
    """How new routes may come into force."""

    SAME = "same"
    """Nothing changes."""
    DIRECT = "direct"
    """Every mixture is safe."""
    STAGED = "staged"
    """Through intermediate tables, every mixture of neighbours is."""
    FITTED = "fitted"
    """So are these, but some trees must stay as they are: not all of the new routes."""
    UNPROVED = "unproved"
    """What is in force has circles or credit loops of its own, so nothing can be proved; or it
    loses packets now, and only a mixture that may do harm ends that."""
    UNKNOWN = "unknown"
    """What is in force is not known well enough."""
    UNSAFE = "unsafe"
    """A mixture may do harm, and no way round it was found."""


@dataclass(frozen=True, eq=False)
class Transition:
    """A verdict with its proof."""

    way: Way
    danger: str
    """What could happen if the new routes were installed at once; empty where nothing could."""
    stages: tuple[Routes, ...]
    """What to install, in this order; the last are the routes that stay. Empty for `UNSAFE`."""
    unmoved: int = 0
    """Trees (LID offset, destination) that keep their old entries where `FITTED`."""

    @property
    def proved(self) -> bool:
        """Whether packets are safe all the way through `stages`."""
        return self.way in (Way.SAME, Way.DIRECT, Way.STAGED, Way.FITTED)

    @property
    def words(self) -> str:
        """The proof, or why there is none, in a sentence."""
        if self.way is Way.SAME:
            return "nothing changes"
        if self.way is Way.DIRECT:
            return "any mixture of old and new entries is free of circles, losses and credit loops"
        if self.way is Way.STAGED:
            return f"safe in {len(self.stages)} stages; at once, {self.danger}"
        if self.way is Way.FITTED:
            return (
                f"safe in {len(self.stages)} stages if {self.unmoved} trees keep their old "
                f"entries; at once, {self.danger}"
            )
        if self.way is Way.UNPROVED:
            return f"not proved, because what is in force is not sound itself: {self.danger}"
        if self.way is Way.UNKNOWN:
            return f"what is in force is not known well enough: {self.danger}"
        return f"not safe: {self.danger}"


def examine(
    fabric: Fabric,
    before: Routes,
    after: Routes,
    proved: Proved | None = None,
    *,
    also: Sequence[Routes] = (),
    had: U8 | None = None,
    levels: NDArray[np.uint16] | None = None,
    most_stages: int = 16,
) -> Transition:
    """Whether and how `after` (which passed the check) may replace `before` (as read back, on the
    indices of `fabric`; broken entries allowed). With the proof that the check of `after` left
    behind only trees that change are walked."""
    if had is not None and (had != before.egress).any():
        return Transition(Way.UNKNOWN, "switches have not confirmed what they were sent", ())
    for other in also:
        second = examine(fabric, other, after, proved, levels=levels, most_stages=most_stages)
        if second.way not in (Way.SAME, Way.DIRECT):
            return replace(second, way=Way.UNSAFE, stages=())
    mixer = Mixer(fabric, before, after)
    changed = mixer.changed()
    if mixer.same_lanes and not changed.any():
        return Transition(Way.SAME, "", (after,))
    pair = mixer.old, mixer.new
    known = proved is not None and mixer.knows(proved)
    planes = (proved.counts > 0).view(np.uint8) if known and proved else mixer.planes()
    found = mixer.mix(pair, changed if known else np.ones_like(changed), planes)
    danger = hazard(mixer, pair, np.where(changed, found, FINE))
    if not danger and mixer.acyclic(planes):
        return Transition(Way.DIRECT, "", (after,))
    if own := _own_danger(mixer if mixer.same_lanes else Mixer(fabric, before, before)):
        return Transition(Way.UNPROVED, own, (after,))
    danger = danger or loop(mixer, pair, planes)
    steps = find_steps(mixer, changed, found, most_stages)
    # Where hardly anything moves the plan is not worth its name.
    if not steps.tables or 2 * steps.unmoved > np.count_nonzero(changed[:, : fabric.terminals]):
        if now := lost(mixer):
            return Transition(Way.UNPROVED, f"{now}; at once, {danger}", (after,))
        return Transition(Way.UNSAFE, danger, ())
    return _through(after, steps, danger)


def _own_danger(mixer: Mixer) -> str:
    """What can happen in what is in force, without any new entry. In its own lanes: taken as one
    they may seem to close a loop that is none, and it would be left for a mixture that does."""
    pair, planes = (mixer.old, mixer.old), mixer.planes()
    found = mixer.mix(pair, np.ones(mixer.old.egress.shape[:2], np.bool_), planes)
    if circles := hazard(mixer, pair, np.where(found == CIRCLE, found, 0)):
        return circles
    return "" if mixer.acyclic(planes) else loop(mixer, pair, planes)


def _through(after: Routes, steps: Steps, danger: str) -> Transition:
    offsets = len(after.egress)

    def routes(tables: Tables) -> Routes:
        level = tables.level[:offsets] if tables.level.size else after.service_level
        return replace(after, egress=tables.egress[:offsets], service_level=level, mark=0)

    if steps.unmoved:
        stages = tuple(map(routes, steps.tables))
        return Transition(Way.FITTED, danger, stages, steps.unmoved)
    return Transition(Way.STAGED, danger, (*map(routes, steps.tables[:-1]), after))
