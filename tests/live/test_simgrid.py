"""Our fluid model against SimGrid's, an independent one: the same flows end at the same times."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from sar_agent.fabric import Fabric
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import multi_switch_mix
from sar_agent.jobs.synthetic import synthetic_jobs
from sar_agent.routing import Options, load_engine
from sar_lab.fluid import PATTERNS
from sar_lab.fluid.flow_events import end_times
from sar_lab.fluid.flow_links import FlowLinks
from sar_lab.fluid.flow_paths import routed_links
from sar_lab.fluid.flow_steps import Flows
from sar_lab.trace.parse import read_trace
from sar_lab.trace.play_trace import flows_of
from sar_lab.trace.program_generators import PROGRAMS, ProgramOptions
from sar_lab.trace.rank_placement import place_ranks
from tests.examples import examples
from tests.property.fluid import Case, cases

JUDGE = Path(__file__).parent / "helpers" / "simgrid_judge.py"
PYTHON = "/usr/bin/python3"
NEAR = 1e-9


def has_simgrid() -> bool:
    """Debian's package is for the system's Python."""
    try:
        return not subprocess.run([PYTHON, "-c", "import simgrid"], capture_output=True).returncode
    except FileNotFoundError:
        return False


pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not has_simgrid(), reason="needs Debian's python3-simgrid"),
]


def judged(links: FlowLinks, flows: Flows) -> list[float]:
    """SimGrid's end times, seconds."""
    question = {
        "capacity": links.capacity.tolist(),
        "paths": [links.link[a:b].tolist() for a, b in zip(links.path, links.stop, strict=True)],
        "size": flows.size.tolist(),
        "step": flows.step.tolist(),
        "last": flows.last.tolist(),
        "wait": flows.wait.tolist(),
    }
    done = subprocess.run(
        [PYTHON, JUDGE], input=json.dumps(question), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found: list[float] = json.loads(done.stdout)
    return found


def mixed_speeds(fabric: Fabric) -> Fabric:
    """Every third cable at a quarter of the speed, every fourth host at half."""
    slow = np.minimum(np.arange(fabric.channels), fabric.channel_reverse) % 3 == 0
    return replace(
        fabric,
        channel_rate=np.where(slow, 25, fabric.channel_rate).astype(np.float32),
        terminal_rate=np.where(np.arange(fabric.terminals) % 4, 100, 50).astype(np.float32),
    )


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("engine", ["minhop", "sar"])
@pytest.mark.parametrize("spec", ["xgft:2;6,6;1,3", "xgft:3;4,3,3;1,3,2"])
@pytest.mark.parametrize("mixed", [False, True])
def test_all_jobs_of_a_tree(spec: str, engine: str, pattern: str, mixed: bool) -> None:
    fabric = xgft_fabric(spec)
    if mixed:
        fabric = mixed_speeds(fabric)
    mix = multi_switch_mix(fabric, synthetic_jobs(fabric, 1, largest=12))
    assert len(mix.jobs) > 2
    flows = PATTERNS[pattern](fabric, mix)
    links = routed_links(fabric, load_engine(engine).route(fabric, mix, Options()), flows)
    ours, theirs = end_times(links, flows), np.array(judged(links, flows))
    assert ours == pytest.approx(theirs, rel=NEAR)
    assert ours.max() > 1.1


@pytest.mark.parametrize("engine", ["dmodk", "ftree"])
@pytest.mark.parametrize("program", ["cartesian", "alltoall"])
@pytest.mark.parametrize("mixed", [False, True])
def test_programs_that_compute_and_wait_at_barriers(program: str, engine: str, mixed: bool) -> None:
    fabric = xgft_fabric("xgft:3;3,3,3;1,3,3")
    wish = ProgramOptions(
        ranks=8, jobs=3, sizes=(4096, 262144), iterations=2, utilization=0.4, seed=2
    )
    trace = read_trace(PROGRAMS[program](wish))
    flows = flows_of(trace, place_ranks(fabric, trace, "random", 1))
    routes = load_engine(engine).route(fabric, JobMix.of([]), Options())
    links = routed_links(mixed_speeds(fabric) if mixed else fabric, routes, flows)
    ours, theirs = end_times(links, flows), np.array(judged(links, flows))
    assert ours == pytest.approx(theirs, rel=NEAR)
    assert flows.wait.min() > 0 and len(flows.wait) >= 6


@examples(40)
@given(case=cases())
def test_random_flows(case: Case) -> None:
    links, flows = case
    assert end_times(links, flows) == pytest.approx(judged(links, flows), rel=NEAR)
