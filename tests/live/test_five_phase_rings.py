"""A ring and a torus where old and new routes are each free of loops, and their mixture is not. Who
subscribes changes nothing of that: at once is refused to everybody, and phases go the proved way,
in stages. The agent runs in this process, with an engine of the test's; OpenSM, munge and the
subscriber are real processes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from sar_agent.agent.build import build_daemon
from sar_agent.agent.loop import Agent
from sar_agent.agent.outcome import Result
from sar_agent.check.intermediate_tables import IntermediateTables
from sar_agent.config.model import load_config
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Engine, Options
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_lab.live.process import wait_until
from tests.live.helpers.phased import Phased, phased

pytestmark = pytest.mark.live
FIRST, SECOND = ("n[001,003]",), ("n[001,003]", "n[002,004]")


class Trees(Engine):
    """Along a spanning tree, another for each number of jobs: nothing can be in a loop."""

    name, summary = "trees", "of this test"

    def route(self, fabric: Fabric, mix: JobMix, options: Options) -> Routes:
        cables = nx.Graph()
        for c in np.flatnonzero(fabric.channel_up):
            cables.add_edge(int(fabric.channel_source[c]), int(fabric.channel_target[c]))
        roots = sorted(cables)
        tree = nx.Graph(nx.bfs_edges(cables, roots[0 if len(mix.jobs) == 1 else len(roots) // 2]))
        egress = np.full((1, fabric.destinations, fabric.switches), NO_ROUTE, np.uint8)
        own = np.concatenate([fabric.terminal_switch, np.arange(fabric.switches)])
        for d, target in enumerate(own.tolist()):
            for s, on in nx.predecessor(tree, target).items():
                port = 0 if d >= fabric.terminals else int(fabric.terminal_switch_port[d])
                egress[0, d, s] = self._port(fabric, s, on[0]) if on else port
        return Routes(engine=self.name, fabric_digest=fabric.digest, egress=egress)

    @staticmethod
    def _port(fabric: Fabric, s: int, towards: int) -> int:
        there = (fabric.channel_source == s) & (fabric.channel_target == towards)
        return int(fabric.channel_port[np.flatnonzero(there & fabric.channel_up)[0]])


@contextmanager
def agent_of(site: Phased) -> Iterator[Agent]:
    """An agent in this process, with a message server."""
    config = load_config(site.config(engine="updn"))
    daemon = build_daemon(config)
    agent, events = daemon.agent, daemon.events
    agent.planner.engine = Trees()
    agent.updates.coordinator.all_known_at = 0.0
    events.start()
    try:
        yield agent
    finally:
        events.stop()


def first_routes(site: Phased, agent: Agent) -> None:
    """The first routes are in force, and all jobs began later: no host has service levels of
    another engine."""
    site.jobs(*FIRST)
    assert agent.pass_once().result is Result.INSTALLED
    site.jobs(*FIRST, start=time.time() + 1)
    assert agent.pass_once().ok


@pytest.mark.parametrize("fabric", ["torus:6,hosts=1", "torus:3x3,hosts=1"])
def test_phases_go_the_proved_way_where_at_once_must_not(tmp_path: Path, fabric: str) -> None:
    with phased(tmp_path, fabric) as site, agent_of(site) as agent:
        first_routes(site, agent)
        before = site.dumped()
        one = site.subscribe(1)
        assert wait_until(lambda: bool(one.events("moved", offset=0)), 30)
        site.jobs(*SECOND, start=time.time() + 1)
        report = agent.pass_once()
        assert report.result is Result.INSTALLED, report.sentence
        row, after = site.rows()[0], site.dumped()
        assert row.how == "five-phase" and row.transition.startswith("safe in "), row
        assert "at once, " in row.transition
        assert after.generation > before.generation + 1, "there were stages"
        assert (before.forwarding[0] != after.forwarding[0]).any()
        hosts = len(after.terminal_guids)
        assert (before.forwarding[1][:, :hosts] == after.forwarding[1][:, :hosts]).all()
        for subscriber in site.subscribers:
            assert wait_until(lambda s=subscriber: s.events("moved")[-1]["offset"] == 0, 30)


def test_an_acknowledgement_is_no_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """repro/e17_trust.py: no stages are found, and the only job has subscribed."""
    nothing = IntermediateTables()
    monkeypatch.setattr(
        "sar_agent.check.transition.find_intermediate_tables", lambda *words, **keys: nothing
    )
    with phased(tmp_path, "torus:6,hosts=1") as site, agent_of(site) as agent:
        first_routes(site, agent)
        before = site.dumped()
        one = site.subscribe(1)
        assert wait_until(lambda: bool(one.events("moved", offset=0)), 30)
        site.jobs(*SECOND, start=time.time() + 1)
        report = agent.pass_once()
        assert report.result is Result.FAILED and "; not safe: " in report.sentence
        assert (before.forwarding == site.dumped().forwarding).all()
        assert one.events("moved")[-1]["offset"] == 0, "nobody was moved for nothing"


def test_fast_does_not_install_them_at_once(tmp_path: Path) -> None:
    with phased(tmp_path, "torus:6,hosts=1", mode="fast") as site, agent_of(site) as agent:
        first_routes(site, agent)
        site.jobs(*SECOND, start=time.time() + 1)
        agent.pass_once()
        row = site.rows()[0]
        assert row.how != "direct" and "at once" in row.transition + row.message, row
