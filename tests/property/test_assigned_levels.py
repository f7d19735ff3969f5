"""The two sets of levels, now and before: never fewer than in a list of all that were assigned."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.install.levels import MOST_ERAS, AssignedLevels
from sar_agent.routing import Routes
from tests.examples import examples


def ring(hosts: tuple[int, ...]) -> Fabric:
    """Four switches; of four hosts those that are there."""
    b = FabricBuilder("ring")
    for s in range(4):
        b.add_switch(100 + s, f"s{s}", 12)
    for s in hosts:
        b.add_terminal(900 + s, f"h{s} HCA-1", f"h{s}", s, 1)
    for s in range(4):
        b.add_link(s, 2, (s + 1) % 4, 3)
    return b.build()


FABRICS = [ring((0, 1, 2, 3)), ring((0, 2, 3)), ring((0, 1, 2))]


def routes(fabric: Fabric, seed: int) -> Routes:
    """Some levels; what they lead to does not matter here."""
    shape = (1, fabric.terminals + fabric.switches, fabric.switches)
    level = np.random.default_rng(seed).integers(0, 6, shape).astype(np.uint8)
    egress = np.full(shape, 2, np.uint8)
    return Routes("x", fabric.digest, egress, virtual_lanes=2, service_level=level)


@dataclass
class Exact:
    """Every level by GUIDs of destination and switch, with the time until it was assigned."""

    until: dict[tuple[int, int, int], float] = field(default_factory=dict)

    def see(self, fabric: Fabric, assigned: Routes, until: float) -> None:
        assert assigned.service_level is not None
        nodes = fabric.nodes.destinations
        for (_, d, s), level in np.ndenumerate(assigned.service_level):
            key = int(nodes[d]), int(nodes[fabric.terminals + s]), int(level)
            self.until[key] = max(until, self.until.get(key, 0.0))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["install", "refused", "restart", "job ends"]),
        st.integers(0, 2),  # the fabric
        st.integers(0, 5),  # the levels
    ),
    min_size=1,
    max_size=12,
)


@examples(150)
@given(STEPS)
def test_never_fewer_levels_than_were_assigned(steps: list[tuple[str, int, int]]) -> None:
    """A job begins before each step; the oldest ends first."""
    exact, clock = Exact(), [1000.0]
    fabric, in_force = FABRICS[0], routes(FABRICS[0], 9)
    jobs: list[float] = []
    with TemporaryDirectory() as folder:
        kept = AssignedLevels(Path(folder), lambda: clock[0])
        kept.begin(fabric, routes(fabric, 8), in_force, ours=True)
        kept.end_others(fabric, in_force)
        exact.see(fabric, routes(fabric, 8), clock[0])
        for what, which, seed in steps:
            jobs.append(clock[0])
            clock[0] += 10
            now = clock[0]
            if what == "restart":
                kept = AssignedLevels(Path(folder), lambda: clock[0])
            elif what == "job ends":
                jobs = jobs[1:]
                kept.forget_ended(jobs)
            else:
                # What is in force is told on the fabric of now, as it is read back there.
                there, after = FABRICS[which], routes(FABRICS[which], seed)
                before = in_force if there is fabric else routes(there, 100 + seed)
                exact.see(fabric, in_force, now)
                exact.see(there, before, now)
                kept.begin(there, before, after, ours=True)
                if what == "install":
                    kept.end_others(there, after)
                    fabric, in_force = there, after
                else:
                    kept.undo_begin()
                    fabric, in_force = there, before
            exact.see(fabric, in_force, now + 5)
            assert len(kept._eras) <= MOST_ERAS + 1
            _has_all(kept, exact, min(jobs, default=np.inf))


def _has_all(kept: AssignedLevels, exact: Exact, oldest: float) -> None:
    """On each fabric; where nothing is kept, a next install begins with what is in force."""
    for fabric in FABRICS:
        probe = routes(fabric, 77)
        found = kept.assigned(fabric, probe)
        nodes = fabric.nodes.destinations
        d_at = {int(guid): d for d, guid in enumerate(nodes)}
        s_at = {int(guid): s for s, guid in enumerate(nodes[fabric.terminals :])}
        for (d, s, level), until in exact.until.items():
            ended = until <= kept.now()
            if ended and until > oldest and d in d_at and s in s_at:
                assert found is not None
                assert found[0, d_at[d], s_at[s]] >> level & 1, (d, s, level)
