"""A snapshot of the live page."""

from __future__ import annotations

import time

import numpy as np

from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.jobs.record import JobRecord
from sar_agent.quality import measure
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.reports.page_box import Trouble
from sar_agent.routing import Options, load_engine
from sar_agent.services.live_page.snapshot import PageSnapshot


def snapshot_of(spec: str, jobs: int) -> PageSnapshot:
    """A fabric under random jobs."""
    fabric = load_fabric(spec)
    rng = np.random.default_rng(1)
    used = rng.permutation(fabric.terminals)[: fabric.terminals * 9 // 10]
    cuts = np.sort(rng.choice(np.arange(2, len(used)), min(jobs, len(used) // 4) - 1, False))
    mix = JobMix.of(
        [
            make_job(str(41200 + j), part.tolist())
            for j, part in enumerate(np.split(used, cuts))
            if len(part) > 1
        ]
    )
    routes = load_engine("minhop").route(fabric, mix, Options())
    traffic = traffic_of(fabric, mix, routes)
    measures, now = measure(fabric, mix, routes, traffic=traffic), time.time()
    return PageSnapshot(
        number=1,
        at=now,
        version="0",
        mode="install",
        engine="sar-plus",
        result="nothing",
        sentence="the same jobs on the same fabric",
        troubles=(
            Trouble('1 link is down: "S2-1"[5] -> "S3-7"[2]', now - 420),
            Trouble("squeue does not answer; going on with what was read 64 s ago", now - 64),
        ),
        in_force={"engine": "sar", "ours": True, "generation": 412, "amendments": 0,
                  "since": now - 8000, "held": False, "routing": "sar-plus", "lanes": "one lane",
                  "dumped": 0.0},
        fabric=fabric,
        mix=mix,
        pending=(
            JobRecord(
                "41300", tuple(fabric.terminal_host[:: fabric.terminals // 4]), "PENDING",
                "ada", start=now + 3600
            ),
        ),
        starts={mix.jobs[0].id: 1_790_000_000.0},
        routes=routes,
        measures=measures,
        decisions=tuple(
            {"at": now - 900 * i - 60, "who": "agent", "reason": "jobs_changed",
             "why": "1 multi-switch job started, 2 ended", "result": "installed", "message": "",
             "generation": 412 - i, "before": {"load_max": 3.1}, "predicted": {"load_max": 2.4},
             "entries_changed": 4120, "how": "direct"}
            for i in range(3)
        ),
    )  # fmt: skip
