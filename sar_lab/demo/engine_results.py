"""Routes of several engines on one fabric and mix, checked and measured."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sar_agent.check import Verdict, check_routes
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.quality import Measures, measure
from sar_agent.routing import Options, load_engine
from sar_agent.routing.lanes import routed
from sar_lab.assess.compile_ahead import compile_parts

ENGINES = ("minhop", "dfsssp", "sar", "sar-plus")
BEFORE, AFTER = "dfsssp", "sar-plus"
"""`BEFORE` is the stronger of the oblivious engines."""


@dataclass(frozen=True)
class EngineResult:
    """The routes of one engine: time, verdict and measures."""

    engine: str
    seconds: float
    verdict: Verdict
    measures: Measures

    @property
    def checked(self) -> str:
        """The verdict in words; `compare_engines` refuses routes that do not reach a pair."""
        return "passed" if self.verdict.passed else self.verdict.problems[0].split(":")[0]

    def json(self) -> dict[str, Any]:
        return {
            "engine": self.engine,
            "seconds": self.seconds,
            "check_passed": self.verdict.passed,
            "unreachable_pairs": self.verdict.unreachable_pairs,
            "deadlock_free": self.verdict.deadlock_free,
            "problems": list(self.verdict.problems),
            **self.measures.json(),
        }


@dataclass(frozen=True)
class Comparison:
    """The results of every engine for the same fabric and jobs."""

    fabric: Fabric
    mix: JobMix
    results: tuple[EngineResult, ...]

    def __getitem__(self, engine: str) -> EngineResult:
        return next(result for result in self.results if result.engine == engine)

    @property
    def before(self) -> Measures:
        return self[BEFORE].measures

    @property
    def after(self) -> Measures:
        return self[AFTER].measures

    def json(self) -> dict[str, Any]:
        return {"fabric": self.fabric.name, "engines": [result.json() for result in self.results]}


def compare_engines(fabric: Fabric, mix: JobMix, engines: Sequence[str] = ENGINES) -> Comparison:
    """Routes, checks and measures; raises `CheckFailed` where a pair is not reached."""
    results = []
    for name in engines:
        compile_parts((name,))
        began = time.perf_counter()
        routes = routed(load_engine(name), fabric, mix, Options())
        seconds = time.perf_counter() - began
        verdict = check_routes(fabric, routes)
        if verdict.unreachable_pairs:
            verdict.require()
        measures = measure(fabric, mix, routes)
        results.append(EngineResult(name, seconds, verdict, measures))
    return Comparison(fabric, mix, tuple(results))
