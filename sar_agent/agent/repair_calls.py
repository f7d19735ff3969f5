"""Calls of the subnet manager: its routing waits for the agent's routes.

OpenSM's plugin calls where it cannot repair the routes in force by itself. Without an answer within
a few seconds the next routing engine rewrites the whole fabric. So the pass that answers begins at
once, and a call that the pass has not answered is declined, so that nobody waits in vain.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from sar_agent.errors import SarError
from sar_agent.install.subnet_manager import SubnetManager

log = logging.getLogger(__name__)
RETRY_SECONDS = 1.0
"""Seconds until the manager is asked again after it did not answer."""


class RepairCalls:
    """Listens in a thread of its own between `start` and `stop`; `wake` is called from there."""

    def __init__(self, manager: SubnetManager, wake: Callable[[], None]) -> None:
        self.manager, self.wake = manager, wake
        self._called = self._answered = 0
        self._ended = threading.Event()

    @property
    def pending(self) -> bool:
        """Whether a call waits for a pass."""
        return self._called != self._answered

    def start(self) -> None:
        """Begin to listen. The thread ends with the process, or soon after `stop`."""
        if self.manager.calls:
            threading.Thread(target=self._listen, name="repair calls", daemon=True).start()

    def stop(self) -> None:
        """Listen no longer."""
        self._ended.set()

    def next_call(self) -> int:
        """The number of the call that the next pass is to answer; 0 for none."""
        if not self.pending:
            return 0
        self._answered = self._called
        return self._answered

    def end(self, call: int) -> None:
        """The pass is over. If it has not answered the call, the manager need not wait longer."""
        if call:
            with suppress(SarError):  # the call is over
                self.manager.decline_call(call)

    def _listen(self) -> None:
        heard = 0
        while not self._ended.is_set():
            try:
                call = self.manager.wait_for_call(heard)
            except SarError:
                self._ended.wait(RETRY_SECONDS)
                continue
            except Exception:
                log.exception("listening for calls of %s", self.manager.name)
                self._ended.wait(RETRY_SECONDS)
                continue
            if call and not self._ended.is_set():
                log.info("%s cannot repair the routes itself, and waits", self.manager.name)
                heard = self._called = call
                self.wake()
