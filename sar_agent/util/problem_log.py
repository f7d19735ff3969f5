"""Logs a lasting problem when it begins and when it ends, not at every pass."""

from __future__ import annotations

import logging
import re


class ProblemLog:
    """Logs, for each topic, a problem when it is new or has changed, and its end."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._logged: dict[str, str] = {}
        self._present: dict[str, str] = {}

    def problem(self, topic: str, sentence: str, over: str = "") -> None:
        """Logs `sentence`, the present problem of `topic`, or `over` once it has ended.

        `sentence` is empty where there is no problem; numbers in it do not make a new problem."""
        self._present[topic] = sentence
        key = re.sub(r"\d+", "", sentence)
        if key == self._logged.get(topic, ""):
            return
        self._logged[topic] = key
        if sentence:
            self._log.warning("%s", sentence)
        elif over:
            self._log.info("%s", over)

    def present(self) -> tuple[str, ...]:
        """The problems that have not ended, in the order in which their topics first appeared."""
        return tuple(filter(None, self._present.values()))
