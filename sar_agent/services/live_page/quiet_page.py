"""The page of an agent that makes no passes: why, and nothing else."""

from __future__ import annotations

import time

from sar_agent import __version__
from sar_agent.config.model import Config
from sar_agent.install.subnet_manager import SmStatus
from sar_agent.reports.page_box import Trouble
from sar_agent.services.live_page.pages import LivePages
from sar_agent.services.live_page.snapshot import PageSnapshot
from sar_agent.services.live_page.web_app import WebApp
from sar_agent.telemetry.metrics import Metrics


class QuietPage:
    """It takes the place of the passes' page, which takes it back with the first pass."""

    def __init__(self, config: Config, metrics: Metrics) -> None:
        self.agent, self.metrics, self.pages = config.agent, metrics, LivePages()
        self._app = WebApp(self.pages, config.agent.page)

    def show(self, words: str, status: SmStatus | None) -> None:
        """The sentence of now, and what the subnet manager answered."""
        self.pages.show(
            PageSnapshot(
                number=-1 - int(time.time()),  # passes count from 1, and may have come before
                at=time.time(),
                version=__version__,
                mode="standby",
                engine=self.agent.engine,
                interval=self.agent.interval_seconds,
                result="standby",
                sentence=words,
                troubles=() if status else (Trouble(words),),
            )
        )
        self.metrics.page = self._app
