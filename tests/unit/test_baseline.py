"""`Agent.observers["baseline"]`: what the jobs would have under OpenSM's own engine."""

from __future__ import annotations

from pathlib import Path

from sar_agent.agent.outcome import Result
from sar_agent.fabric.ibsim_net import write_ibsim_net
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.mapping import mix_of_records
from sar_agent.quality import measure
from sar_agent.routing import Options, load_engine
from tests.worlds.agent_world import JOBS, World


def test_the_gain_stays_visible_beside_the_routes_of_opensms_engine(tmp_path: Path) -> None:
    world = World(tmp_path)

    def load(routes: str) -> float | None:
        return world.value("sar_agent_channel_load_max", routes=routes)

    world.once()
    assert load("baseline") is None, "an install comes first"
    assert world.once().result is Result.NOTHING
    for records in (JOBS, JOBS[:1]):
        world.source.records = records
        world.once()
        mix = mix_of_records(world.fabric, records).mix
        routes = load_engine("ftree").route(world.fabric, JobMix(()), Options())
        assert load("baseline") == measure(world.fabric, mix, routes).load_max
        assert load("in_force") is not None
    write_ibsim_net(load_fabric("torus:3x3,hosts=2"), world.net)
    world.bridge.topology_changes += 1
    for _ in range(2):
        world.once()
    routes = load_engine("minhop").route(world.fabric, JobMix(()), Options())
    mix = mix_of_records(world.fabric, JOBS[:1]).mix
    assert load("baseline") == measure(world.fabric, mix, routes).load_max
