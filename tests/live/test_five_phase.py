"""The five-phase update with real parties: OpenSM with our plugin over ibsim, the agent, munge, and
subscribers in processes of their own. Nobody may ever be on tables that change."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sar_agent.formats.routes_file import RoutesFile
from sar_agent.install.generations import Generations
from sar_lab.live.process import wait_until
from tests.worlds.live.phased import Phased, offsets_at, phased
from tests.worlds.live.plugin_watch import PluginWatch
from tests.worlds.live.subscriber import Subscriber

pytestmark = pytest.mark.live
FIRST = ("n[001,005,009]", "n[002,006]")
SECOND = (*FIRST, "n[003,007,011,015]")


def changing(watch: PluginWatch) -> tuple[float, float]:
    """When blocks were first seen to change, and when the new tables were last seen not to be in
    force: within the time in which tables changed, however late the watch looks."""
    blocks = watch.seen[0][1].lft_blocks_confirmed
    generation = watch.seen[0][1].generation_in_force
    first = next(at for at, one in watch.seen if one.lft_blocks_confirmed != blocks)
    last = max(at for at, one in watch.seen if one.generation_in_force == generation)
    return first, max(first, last)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Phased]:
    with phased(tmp_path) as here:
        here.jobs(*FIRST)
        yield here
    here.assert_model_could()


def begin(site: Phased) -> tuple[Subscriber, Subscriber]:
    """The agent runs and has installed; two jobs have subscribed and use offset 0."""
    site.start()
    site.wait_installed()
    first, second = site.subscribe(1), site.subscribe(2)
    site.wait_subscribed(2)
    site.wait_all_on(0)
    return first, second


def test_tables_change_while_everybody_is_sheltered(site: Phased) -> None:
    both = begin(site)
    before, status = site.dumped(), site.bridge.status()
    with PluginWatch(site) as watch:
        site.jobs(*SECOND)
        site.wait_installed(status.generation_in_force)
        site.wait_all_on(0)
    begun, ended = changing(watch)
    for one in both:
        moved = [line["at"] for line in one.events("moved", offset=1)]
        back = [line["at"] for line in one.events("move", offset=0)]
        assert moved[-1] < begun <= ended < back[-1]
        assert offsets_at(one, begun) == offsets_at(one, ended) == {1}
    after = site.dumped()
    assert (before.forwarding[0] != after.forwarding[0]).any()
    assert (before.forwarding[1] == after.forwarding[1]).all()
    assert before.service_levels is not None and after.service_levels is not None
    assert (before.service_levels[1] == after.service_levels[1]).all()
    row = site.rows()[0]
    assert row.how == "five-phase" and row.phases is not None
    assert row.phases["subscribers"] == 2
    assert list(row.phases["seconds"]) == ["unpath", "install", "repath"]
    for phase in ("unpath", "install", "repath"):
        assert f"phase {phase} with 2 subscribers" in site.log()


def test_opensm_tells_subscribers_too(site: Phased) -> None:
    """By notices, of which one may be lost, or come after the agent's own word."""
    both = begin(site)
    for nodes in (SECOND, FIRST, SECOND):
        generation = site.bridge.status().generation_in_force
        site.jobs(*nodes)
        site.wait_installed(generation)
        site.wait_all_on(0)
        if wait_until(lambda: all(one.events("notice") for one in both), 10):
            return
    raise AssertionError([one.lines() for one in both])


def test_a_subscriber_that_stays_on_offset_0_prevents_the_install(site: Phased) -> None:
    first, second = begin(site)
    before = site.dumped()
    second.process.send_signal(signal.SIGSTOP)
    site.jobs(*SECOND)
    assert wait_until(lambda: site.rows()[0].result == "failed", 60), site.log()
    assert "1 of 2 subscribers did not leave LID offset 0" in site.rows()[0].message
    assert (before.forwarding == site.dumped().forwarding).all()
    site.wait_all_on(0, first)
    second.process.send_signal(signal.SIGCONT)
    assert_consistent(site, before)


PHASES = pytest.mark.parametrize(
    "phase", ["install", *(pytest.param(p, marks=pytest.mark.long) for p in ("unpath", "repath"))]
)


@contextmanager
def held_in(site: Phased, phase: str) -> Iterator[None]:
    """Other jobs come, and the run stays in `phase`: the second subscriber stands still, or a
    switch does not answer."""
    second = site.subscribers[1].process
    if phase == "unpath":
        second.send_signal(signal.SIGSTOP)
    else:
        site.fabric.drop("S1-0", 100, 25)
    site.jobs(*SECOND)
    if phase == "unpath":
        site.wait_all_on(1, site.subscribers[0])
    else:
        site.wait_phase("install")
    if phase == "repath":
        second.send_signal(signal.SIGSTOP)
        site.fabric.drop("S1-0", 0, 25)
    site.wait_phase(phase)
    try:
        yield
    finally:
        site.fabric.drop("S1-0", 0, 25)
        second.send_signal(signal.SIGCONT)


def assert_consistent(site: Phased, before: RoutesFile, *subscribers: Subscriber) -> None:
    """The run is over, all who live are back, the shelter is as it was, the routes are a plan's."""
    site.wait_installed(before.generation)
    site.wait_all_on(0, *subscribers)
    assert wait_until(lambda: site.saved_phase() == "idle", 30)
    site.wait_built()
    after = site.dumped()
    assert (after.forwarding[1] == before.forwarding[1]).all()
    kept = Generations(site.folder / "state").read(site.rows()[0].generation)
    assert (after.forwarding[0] == kept.forwarding[0]).all()


@PHASES
def test_kill_9_of_the_agent(site: Phased, phase: str) -> None:
    first, second = begin(site)
    before = site.dumped()
    with held_in(site, phase):
        site.kill_agent()
        assert site.saved_phase() == phase
        if phase == "install":
            assert offsets_at(second, time.time()) == {1}
        if phase != "repath":
            assert offsets_at(first, time.time()) == {1}
    site.start()
    assert_consistent(site, before)


@PHASES
def test_kill_9_of_opensm(site: Phased, phase: str) -> None:
    begin(site)
    before = site.dumped()
    with held_in(site, phase):
        site.sm.kill()
    site.sm.start().wait_up()
    assert_consistent(site, before)


def test_a_rank_that_hears_tells_the_others(tmp_path: Path) -> None:
    """One process of a job receives the SM's notices and forwards them, so that the others need
    not wait for their next request to the agent."""
    with phased(tmp_path, lease_seconds=9) as site:
        others_hear(site)
    site.assert_model_could()


def others_hear(site: Phased) -> None:
    site.jobs(*FIRST)
    site.start()
    generation = site.wait_installed().generation_in_force
    ranks = site.subscribe(1, "count=6")
    site.wait_subscribed(6)
    assert wait_until(lambda: len(ranks.events("moved", offset=0)) == 6, 30)
    site.jobs(*SECOND)
    site.wait_installed(generation)
    told = {line["id"] for line in ranks.events("notice")}
    assert len(told) > 1, "one hears OpenSM; sometimes the agent is quicker than both"
