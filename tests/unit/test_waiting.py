"""Changes between, during and beside passes, on a clock that the tests turn."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sar_agent.agent.repair_calls import RepairCalls
from sar_agent.agent.reroute_pacer import Pacing
from sar_agent.agent.waiting import DaemonSignals, wait
from sar_agent.config.model import Config
from sar_agent.events.authority import Authority
from sar_agent.install.subnet_manager import SmStatus
from sar_agent.opensm.plugin_client import LoadAnswer
from sar_agent.services.keys.requests import KeyRequests
from tests.worlds.agent_world import JOBS, World
from tests.worlds.fake_opensm import FakeBridge

CONFIG = Config()
INTERVAL, POLL = 30.0, CONFIG.opensm.poll_seconds
SETTLED = POLL + CONFIG.agent.fabric_debounce_seconds


class Turned:
    """A clock; `at` are things that happen at a moment of it. An event waits by it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.at: list[tuple[float, Callable[[], None]]] = []

    def pass_by(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        end = self.now + seconds
        while not until():
            due = min(self.at, key=lambda one: one[0], default=None)
            if due is None or due[0] > end:
                self.now = end
                return until()
            self.at.remove(due)
            self.now = max(self.now, due[0])
            due[1]()
        return True


class TurnedEvent(threading.Event):
    def __init__(self, clock: Turned) -> None:
        super().__init__()
        self.clock = clock

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        return self.clock.pass_by(timeout, self.is_set)


class Desk(KeyRequests):
    """`left` requests wait for as many turns."""

    left = 0

    @property
    def busy(self) -> bool:
        return self.left > 0


class Loop:
    """A real agent's status, standing and passes; its waiting by the turned clock."""

    def __init__(self, folder: Path) -> None:
        self.world = World(
            folder, interval_seconds=INTERVAL, min_install_interval_seconds=0, min_gain=0
        )
        self.agent: Any = self.world.agent
        self.clock = Turned()
        self.agent.unexpected.clock = lambda: self.clock.now
        self.woken = DaemonSignals(*(TurnedEvent(self.clock) for _ in range(3)))
        self.pacing = Pacing(self.agent.config.agent, patient=True, clock=lambda: self.clock.now)
        self.agent.pacing = self.pacing
        self.desk = Desk(Authority(frozenset()), lambda: None)
        self.served: list[float] = []
        self.on_serve: Callable[[], None] = lambda: None
        self.agent.pool.requests = self.desk
        self.agent.serve_keys = self._serve
        self.asked: list[float] = []
        ask = self.agent.ask_status

        def counted() -> SmStatus | None:
            self.asked.append(self.clock.now)
            return ask()  # type: ignore[no-any-return]

        self.agent.ask_status = counted
        self.agent.events = SimpleNamespace(inbox=SimpleNamespace(pending=lambda: None))
        self.calls = RepairCalls(self.world.agent.manager, lambda: None)

    @property
    def bridge(self) -> FakeBridge:
        return self.world.bridge

    def _serve(self) -> None:
        self.served.append(self.clock.now)
        self.desk.left -= 1
        self.on_serve()

    def go(self, during: Callable[[], None] = lambda: None) -> float:
        """A pass, `during` after its look, and the wait after it, in seconds."""
        self.pacing.begin()
        # After the observation, before all else:
        self.agent.publisher.job_map = lambda records: during()
        self.agent.pass_once()
        self.pacing.end()
        began = self.clock.now
        assert wait(self.agent, self.woken, lambda: None, self.calls)
        return self.clock.now - began


@pytest.fixture
def loop(tmp_path: Path) -> Loop:
    made = Loop(tmp_path)
    made.agent.pass_once()
    return made


def test_quiet_is_a_whole_interval(loop: Loop) -> None:
    assert loop.go() == INTERVAL
    assert len(loop.asked) >= INTERVAL / POLL, "and the plugin is asked all along"


def test_a_cable_that_comes_back_is_looked_at_within_a_second(loop: Loop) -> None:
    def back() -> None:
        loop.bridge.topology_changes += 1

    loop.clock.at.append((10.4, back))
    assert loop.go() <= 10.4 + SETTLED < 11.4


def test_a_fallback_right_after_an_install(loop: Loop) -> None:
    """Before the status after it is asked for, which the pass itself shows in its metrics."""
    loop.world.source.records = JOBS[:1]
    load = loop.bridge.load

    def load_and_fall(generation: int, proved_from: str | None = None) -> LoadAnswer:
        answer = load(generation, proved_from)
        loop.bridge.fall_back()
        return answer

    loop.bridge.load = load_and_fall  # type: ignore[method-assign]
    assert loop.go() <= SETTLED
    assert loop.bridge.engine == "minhop"


def test_an_edit_during_the_pass_is_seen_at_once(loop: Loop) -> None:
    assert loop.go(during=loop.woken.edited.set) == 0.0


def test_a_pass_without_a_look_does_not_turn_without_a_pause(loop: Loop) -> None:
    def broken() -> None:
        raise RuntimeError("before the look")

    loop.agent.observer.observe = broken
    assert loop.go() == INTERVAL


def test_after_an_error_nobody_foresaw_wake_ups_wait(loop: Loop) -> None:
    def fails() -> None:
        raise RuntimeError("after the look")

    loop.woken.edited.set()
    waits = [loop.go(during=fails) for _ in range(9)]
    assert waits[:4] == [1.0, 2.0, 4.0, 8.0]
    assert max(waits) == 60.0, "a repair is not put off for longer"


def test_a_failed_key_is_retried_after_a_pause(loop: Loop) -> None:
    loop.desk.left = 10**9

    def fails() -> None:
        raise RuntimeError("a key")

    loop.on_serve = fails
    del loop.agent.serve_keys
    loop.agent.keys.clock = lambda: loop.clock.now
    loop.agent.keys._turn = lambda tickets, current: loop._serve()
    assert loop.go() == INTERVAL
    assert 4 <= len(loop.served) <= 6
