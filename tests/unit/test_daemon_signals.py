"""SIGTERM ends the agent wherever it interrupts it. (In a process of its own: signals belong to the
main thread.)"""

from __future__ import annotations

import subprocess
import sys

BEGIN = """
import os, signal
from sar_agent.agent.waiting import DaemonSignals
signals = DaemonSignals()
signals.listen()
"""


def printed(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + code], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_it_comes_while_an_event_is_locked() -> None:
    """Each `clear`, `set` and `wait` of the main thread takes this lock for a moment."""
    code = """
for event in (signals.wake, signals.stop):
    with event._cond:
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(100):  # where Python calls handlers
            pass
print(signals.stop.wait(60), signals.wake.wait(60))
"""
    assert printed(code) == "True True"


def test_another_signal_does_not_end_it() -> None:
    code = """
signal.signal(signal.SIGUSR1, lambda number, frame: None)
os.kill(os.getpid(), signal.SIGUSR1)
print(signals.stop.wait(0.5))
os.kill(os.getpid(), signal.SIGINT)
print(signals.stop.wait(60))
"""
    assert printed(code).split() == ["False", "True"]
