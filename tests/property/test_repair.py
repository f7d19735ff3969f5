"""How many failures the plugin repairs, and that no host is lost. Whether its repairs are safe is
judged by the definition in test_judged.py, and by ibdmchk in tests/live/test_repairs_judged.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sar_agent.formats.routes_file import NO_SWITCH, RoutesFile
from tests.examples import share
from tests.worlds.repair_program import repairing
from tests.worlds.repairs import Failure, failures, plan_of

KINDS = ["cable", "cable", "few", "many", "spine", "leaf"]


def reaches(plan: RoutesFile, failure: Failure, table: np.ndarray) -> bool:
    """Whether each live switch with hosts leads packets to each host of the others."""
    ends = plan.far_ends.copy()
    for s, port in failure.cables:
        far = int(ends[s, port])
        if far == NO_SWITCH:
            continue  # named from its other end, too
        ends[s, port] = ends[far >> 8, far & 255] = NO_SWITCH
    bears = set(plan.terminal_leaf.tolist()) - failure.switches
    for column, leaf in enumerate(plan.terminal_leaf.tolist()):
        for here in bears if leaf in bears else ():
            for _ in range(len(ends)):
                if here == leaf:
                    break
                port = int(table[0, here, column])
                far = int(ends[here, port]) if port < ends.shape[1] else NO_SWITCH
                if far == NO_SWITCH or far >> 8 in failure.switches:
                    return False
                here = far >> 8
            if here != leaf:
                return False
    return True


@pytest.mark.parametrize(
    ("spec", "least"),
    [
        ("xgft:2;6,6;1,4", 0.5), ("xgft:3;3,3,3;1,3,3", 0.5), ("xgft:2;4,5;1,3", 0.5),
        ("torus:4x4,hosts=2", 0.25), ("torus:3x3x3", 0.25), ("dragonfly:a=4,h=2,p=1", 0.25),
    ],
)  # fmt: skip
def test_most_failures_are_repaired_and_lose_no_host(
    spec: str, least: float, tmp_path: Path
) -> None:
    """Each from the plan."""
    plan = plan_of(spec, "sar-plus" if spec.startswith("xgft") else "updn")
    assert plan is not None
    rng, repaired, count = np.random.default_rng(1), 0, share(40)
    with repairing(plan, tmp_path) as program:
        assert program.verified.startswith("holds"), program.verified
        for _ in range(count):
            failure = failures(plan, rng, str(rng.choice(KINDS)))
            program.load(plan)
            done = program.go(failure.commands())
            while done.entries and done.later:
                done = program.go(failure.commands())
            if not done.refusal:
                assert not done.dropping and reaches(plan, failure, program.now), failure
                repaired += 1
    assert repaired > least * count


@pytest.mark.parametrize("engine", ["sar-plus", "updn"])
def test_three_cables_of_three_levels(engine: str, tmp_path: Path) -> None:
    """The way around may lead over a switch that no packet of a host passes yet."""
    plan, rng, refused = plan_of("xgft:3;3,3,3;1,3,3", engine, 1), np.random.default_rng(1), 0
    assert plan is not None
    with repairing(plan, tmp_path) as program:
        for _ in range(300):
            program.load(plan)
            refused += bool(program.go(failures(plan, rng, "few").commands()).refusal)
    assert refused <= 3, "hosts of these have no rising path"
