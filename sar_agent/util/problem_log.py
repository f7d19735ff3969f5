"""Trouble that lasts is said when it begins and when it ends, not at every pass."""

from __future__ import annotations

import logging
import re


class ProblemLog:
    """By topic: a problem is logged when it is new or another; its end is logged, too."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._said: dict[str, str] = {}

    def problem(self, topic: str, sentence: str, over: str = "") -> None:
        """`sentence` is empty where all is well; numbers in it do not make it another problem."""
        key = re.sub(r"\d+", "", sentence)
        if key == self._said.get(topic, ""):
            return
        self._said[topic] = key
        if sentence:
            self._log.warning("%s", sentence)
        elif over:
            self._log.info("%s", over)
