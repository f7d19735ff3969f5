"""What `assess` promises on rail pods, what the agent delivers, and the time until a page.

The agent's tables are of its own planner, for the jobs as squeue names them (hosts); those of
`assess` are rated as the page rates them, for the mix that it read. Both are measured under the
same messages.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from sar_agent.agent.planner import Planner
from sar_agent.config.model import Config
from sar_agent.demand.endpoints import mix_of_host_sets, mix_of_spec, multi_switch_mix
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.quality import measure
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lanes import routed
from sar_lab.assess.rate import rate_all
from sar_lab.research.peers.collective_demand import jobs_of, rail_fabric
from tests.bench.assess_times import ASSESS
from tests.bench.bench_fabrics import available, fabric_of, size_of
from tests.bench.table import Table, goal
from tests.data import data_root

SEEDS = range(1, 7)
SPINES = {"rails 1:1": 16, "rails 2:1": 8}
"""Of the review's pods: 64 hosts with four ports."""
DRAWS = 4
ASSESSED = {"selene-storage": "mix:1", "director-notabs": "mix:1"}
FIRST, FINAL = 10, 60
"""Seconds until the first page and the final one."""


class RailPod(NamedTuple):
    """Means over jobs of the time with all messages at once, as the fullest links give it."""

    ftree: float
    agent: float
    assess: float


def tables(full: bool) -> Iterator[Table]:
    """Rail pods; `assess` on the two largest real fabrics."""
    yield _rail_pods()
    yield _pages()


def _rail_pods() -> Table:
    table = Table(
        "Rail pods: the agent's tables beside those of `assess`",
        ("fabric", "ftree", "agent", "assess", "agent / assess", "agent / ftree"),
        "Mean over jobs of the time to send all messages at once, from the fullest links.",
    )
    over_assess, over_ftree = [], []
    for name, pod in _pods():
        ratios = pod.agent / pod.assess, pod.agent / pod.ftree
        over_assess.append(ratios[0])
        over_ftree.append(ratios[1])
        table.add(name, *(f"{value:.3f}" for value in (*pod, *ratios)))
    table.goals = [
        goal("agent over assess, the largest", max(over_assess), 1.01, ""),
        goal("agent over ftree, the largest", max(over_ftree), 1.0, ""),
    ]
    return table


def _pods() -> Iterator[tuple[str, RailPod]]:
    for name in available(["dgx-ndr"]):
        fabric = fabric_of(name)
        for seed in SEEDS:
            yield f"{name}, mix:{seed}", rail_pod(fabric, mix_of_spec(f"mix:{seed}", fabric))
    for name, spines in SPINES.items():
        fabric = rail_fabric(spines)
        for draw in range(DRAWS):
            mix = multi_switch_mix(fabric, jobs_of(fabric, draw).whole_jobs)
            yield f"{name}, draw {draw + 1}", rail_pod(fabric, mix)


def rail_pod(fabric: Fabric, mix: JobMix) -> RailPod:
    """Three tables under the same messages."""
    ftree = routed(load_engine("ftree"), fabric, JobMix(()), Options())
    found = rate_all(fabric, mix, ftree, ("sar-plus",)).after
    if found is None:
        raise RuntimeError(f"{fabric.name}: assess has no tables for the jobs")
    hosts = [
        frozenset(fabric.terminal_host[t] for t in job.terminals.tolist()) for job in mix.whole_jobs
    ]
    settings = Config()
    planner = Planner(settings, load_engine(settings.agent.engine))
    agent = planner.plan(1, fabric, mix_of_host_sets(fabric, hosts)).routes

    def time_under(routes: Routes) -> float:
        return measure(fabric, mix, routes).load_time_mean

    return RailPod(time_under(ftree), time_under(agent), time_under(found.routes))


def _pages() -> Table:
    table = Table(
        "`assess`: its first page, its final page, and its headline",
        ("fabric", "first page", "final page", "headline", "simulated"),
        "Seconds of a process from its start; kernels are compiled, OpenSM is asked. The headline "
        "is that of the verdict: the largest saving of a collective, a bound where it was not "
        "simulated.",
    )
    for name in available(ASSESSED):
        first, final, found = assess(name, ASSESSED[name])
        simulated = found["before"]["time_by"] == "simulation"
        spans = [100 * each["saved"] for each in found["verdict"]["collectives"].values()]
        table.add(
            f"{size_of(fabric_of(name))}, {ASSESSED[name]}",
            f"{first:.1f} s",
            f"{final:.1f} s",
            f"{'' if simulated else 'up to '}{max(spans):.1f} %",
            "yes" if simulated else "no",
        )
        told = simulated or "up to" in found["verdict"]["sentence"]
        table.goals += [
            goal(f"{name}, first page", first, FIRST, "s"),
            goal(f"{name}, final page", final, FINAL, "s"),
            f"{name}: the headline is {'simulated' if simulated else 'a bound'}: "
            f"{'said' if told else 'NOT said'}",
        ]
    return table


def assess(name: str, jobs: str) -> tuple[float, float, dict[str, Any]]:
    """Seconds until the first and the final page, and `assess --json`."""
    with tempfile.TemporaryDirectory(prefix="sar-bench-") as folder:
        words = ("--fabric", str(data_root() / f"{name}.ibnetdiscover"), "--jobs", jobs)
        began, first = time.monotonic(), inf
        answer = Path(folder, "answer.json")
        with (
            answer.open("w") as out,  # no pipe, which would fill up while the other one is read
            subprocess.Popen(
                [*ASSESS, *words, "--json", "--out", folder],
                stdout=out,
                stderr=subprocess.PIPE,
                text=True,
            ) as run,
        ):
            assert run.stderr
            for line in run.stderr:
                if "a first page" in line:
                    first = time.monotonic() - began
        return first, time.monotonic() - began, json.loads(answer.read_text())
