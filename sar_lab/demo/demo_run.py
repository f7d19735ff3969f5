"""The whole demo: three comparisons and their numbers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_lab.demo.engine_results import Comparison, compare_engines
from sar_lab.demo.sweep import SEEDS, SLIM, SweepPoint, sweep
from sar_lab.demo.three_jobs import compare_three_jobs

FABRIC, JOBS = SLIM, "mix:1"


@dataclass(frozen=True)
class Demo:
    """Everything that the table, the page and `--json` show."""

    fabric_spec: str
    jobs_spec: str
    three_jobs: Comparison
    main: Comparison
    sweep: tuple[SweepPoint, ...]
    seconds: float

    @property
    def command(self) -> str:
        """The command that gives these numbers again."""
        return f"sar-agent demo --fabric '{self.fabric_spec}' --jobs {self.jobs_spec}"

    def json(self) -> dict[str, Any]:
        return {
            "command": self.command,
            "jobs": self.jobs_spec,
            **self.main.json(),
            "three_jobs": self.three_jobs.json(),
            "sweep": [point.json() for point in self.sweep],
            "seconds": self.seconds,
        }


def run_demo(
    fabric: Fabric,
    mix: JobMix,
    *,
    fabric_spec: str = FABRIC,
    jobs_spec: str = JOBS,
    seeds: range = SEEDS,
    say: Callable[[str], None] = lambda step: None,
) -> Demo:
    """Runs the comparisons; `say` gets the name of each. The small one is first and loads the
    kernels, so that the `seconds` of the others measure the engines alone.

    Raises `InputError` where no job spans two leaf switches.
    """
    if not mix.jobs:
        raise InputError(
            f"no job of {jobs_spec} spans two leaf switches of {fabric_spec}",
            remedy="give jobs that do; otherwise there is nothing to compare",
        )
    began = time.perf_counter()
    say("three jobs")
    small = compare_three_jobs()
    say(f"{len(mix.jobs)} jobs on {fabric.terminals} hosts")
    main = compare_engines(fabric, mix)
    say("more and more hosts in jobs")
    points = sweep(seeds=seeds)
    return Demo(fabric_spec, jobs_spec, small, main, points, time.perf_counter() - began)
