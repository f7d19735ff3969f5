"""Asks the plugin for its status every few milliseconds, in a thread."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from sar_agent.errors import SarError
from sar_agent.opensm.plugin_client import PluginStatus
from tests.worlds.live.phased import Phased


class PluginWatch:
    """`with PluginWatch(site) as watch:` keeps each status with the time at which it came."""

    def __init__(self, site: Phased) -> None:
        self.site, self.seen = site, list[tuple[float, PluginStatus]]()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._end.wait(0.002):
            asked = time.time()
            with suppress(SarError):
                self.saw(asked, self.site.bridge.status())

    def saw(self, asked: float, status: PluginStatus) -> None:
        """One answer; the plugin was asked at `asked`, seconds since 1970."""
        self.seen.append((time.time(), status))

    def __enter__(self) -> PluginWatch:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join(10)
