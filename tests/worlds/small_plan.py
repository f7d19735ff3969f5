"""A plan without jobs for a tree of nine hosts."""

from __future__ import annotations

from sar_agent.fabric.spec import load_fabric
from sar_agent.install.plan import Plan, make_plan
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine

SMALL_TREE = load_fabric("xgft:2;3,3;1,2")


def small_plan() -> Plan:
    """Generation 5."""
    mix = JobMix.of([])
    return make_plan(5, SMALL_TREE, mix, load_engine("dfsssp").route(SMALL_TREE, mix, Options()))
