"""Calls of the subnet manager, from its answer to the pass that answers them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from sar_agent.agent.repair_calls import RepairCalls
from sar_agent.errors import SarError, Unavailable
from sar_lab.live.process import wait_until
from tests.worlds.agent_world import World


class Manager:
    """Answers `wait_for_call` with what the test says, one by one."""

    name, calls = "OpenSM", True

    def __init__(self, *answers: int | Exception) -> None:
        self.answers, self.heard, self.declined = list(answers), [], []  # type: ignore[var-annotated]
        self.silent = threading.Event()

    def wait_for_call(self, answered: int) -> int:
        self.heard.append(answered)
        if not self.answers:
            self.silent.wait(60)
            return 0
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def decline_call(self, call: int) -> None:
        self.declined.append(call)
        if call == 9:
            raise SarError("no routing waits in call 9")


def listening(manager: Any, monkeypatch: Any) -> tuple[RepairCalls, threading.Event]:
    monkeypatch.setattr("sar_agent.agent.repair_calls.RETRY_SECONDS", 0.001)
    woken = threading.Event()
    calls = RepairCalls(manager, woken.set)
    calls.start()
    return calls, woken


def test_a_call_wakes_the_agent_and_is_taken_once(monkeypatch: Any) -> None:
    manager = Manager(0, Unavailable("OpenSM starts"), RuntimeError("unforeseen"), 4)
    calls, woken = listening(manager, monkeypatch)
    assert woken.wait(30) and calls.pending
    assert calls.next_call() == 4 and not calls.pending and calls.next_call() == 0
    assert wait_until(lambda: manager.heard == [0, 0, 0, 0, 4], 30)
    calls.end(4)
    calls.end(0)  # a pass that nobody called for
    assert manager.declined == [4]
    calls.stop()
    manager.silent.set()


def test_a_pass_that_is_called_for_does_not_wait_for_slurm(tmp_path: Path) -> None:
    world = World(tmp_path)
    agent, polls = world.agent, []
    poll = agent.observer.source.poll

    def counted() -> Any:
        polls.append(1)
        return poll()

    agent.observer.source.poll = counted  # type: ignore[method-assign]
    agent.pass_once(called=True)
    assert len(polls) == 1, "the queue was never read"
    agent.pass_once(called=True)
    assert len(polls) == 1
    agent.pass_once()
    assert len(polls) == 2
