"""After a rehearsal an agent finds everything compiled, whatever its fabric."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from sar_agent.agent.rehearsal import rehearse
from sar_agent.config.model import AgentConfig, Config
from sar_agent.errors import SarError

SIGNATURES = """
import json, sys
from dataclasses import replace
from sar_agent.util.kernels import Kernel
from sar_agent.services.keys.make_key import make
from sar_agent.agent.planner import Planner
from sar_agent.agent.rehearsal import rehearse
from sar_agent.check import senders_proved
from sar_agent.check.transition import examine
from sar_agent.config.model import AgentConfig, Config
from sar_agent.services.keys.tickets import TrafficWish
from sar_agent.fabric.spec import load_fabric
from sar_agent.install.recent import longest_way
from sar_agent.install.transit import transition_to
from sar_agent.demand.endpoints import mix_of_host_sets
from sar_agent.routing import load_engine
import numpy as np

def known():
    return {
        (name, kernel.__name__, str(signature))
        for name, module in list(sys.modules.items()) if name.startswith("sar_agent.")
        for kernel in vars(module).values()
        if isinstance(kernel, Kernel) and "compiled" in vars(kernel)
        for signature in kernel.compiled.signatures
    }

config = Config(agent=AgentConfig(engine=sys.argv[1], max_lanes=8))
rehearse(config)
before = known()
for spec, lmc in (("xgft:2;6,5;1,3", 3), ("xgft:3;4,3,3;1,3,2", 0), ("torus:4x3x3,hosts=3", 0)):
    fabric = replace(load_fabric(spec), lmc=lmc)
    hosts, planner = sorted(fabric.hosts), Planner(config, load_engine(sys.argv[1]))
    plan = stands = None
    for number in range(4):
        now = fabric.with_links_down([number], []) if number == 2 else fabric
        jobs = [frozenset(hosts[i :: 5]) for i in range(number)]
        plan = planner.plan(number + 1, now, mix_of_host_sets(now, jobs), plan)
        transition_to(plan, stands)
        if stands:
            had = stands.egress.copy()
            had[:, : number + 1, 0] = 255
            examine(now, stands, plan.routes, had=had, also=[stands])
            examine(now, stands, plan.routes, also=[stands, stands])
        senders_proved(now, plan.routes, plan.proved)
        longest_way(now, replace(plan.routes, egress=plan.routes.egress.copy()))
        stands = plan.routes
    if spec.startswith("xgft"):
        load = np.ones(fabric.channels, np.int32)
        make(fabric, tuple(hosts), TrafficWish(traffic="shift:3"), load)
print(json.dumps([len(before), sorted(known() - before)]))
"""


@pytest.mark.long
@pytest.mark.parametrize("engine", ["sar-plus", "sar"])
def test_nothing_is_left_to_compile(engine: str) -> None:
    """In a process of its own: one that ran other tests knows too much."""
    run = subprocess.run(
        [sys.executable, "-c", SIGNATURES, engine], capture_output=True, text=True, check=True
    )
    known, new = json.loads(run.stdout)
    assert known > 30
    assert new == []


def test_an_engine_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SarError, match="no-such"):
        rehearse(Config(agent=AgentConfig(engine="no-such")))
