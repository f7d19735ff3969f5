"""The page: the fabric with the messages of the jobs on its cables, seconds of each iteration, and
what was told."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.quality.ring_messages import RingMessages, ring_messages
from sar_lab.emulate import WHAT_IT_IS_NOT
from sar_lab.emulate.idle import counts
from sar_lab.emulate.live.losses import Losses
from sar_lab.emulate.live.mpi_jobs import MpiJob
from sar_lab.emulate.live.site import LiveSite
from sar_lab.page_templates import templates

_SHOWN = 60
"""Iterations of a job."""
_WIDTH, _SPINE_Y, _LEAF_Y = 720, 40, 190


class LivePage:
    """`index.html` in `folder`, which is made; written at most once a second."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "index.html"
        self.lines: list[tuple[float, str]] = []
        """Seconds since the start, and text."""
        self.losses: Losses | None = None
        self.idle: float | None = None
        self.over = False
        self._template, self._written = templates().get_template("live.html"), 0.0
        self._drawn: dict[str, Any] = {}

    def write(self, site: LiveSite | None) -> None:
        """As all is now; `site` is None before everything runs."""
        if not self.over and time.monotonic() - self._written < 1:
            return
        if site and site.followed.routes and not self.over:
            self._drawn = _fabric(site) | {
                "jobs": [_job(number, job) for number, job in enumerate(site.jobs.running)],
                "compared": site.followed.compared,
            }
        text = self._template.render(
            what=WHAT_IT_IS_NOT, over=self.over, lines=self.lines, losses=self.losses,
            idle=self.idle, counts=counts, drawn=self._drawn,
        )  # fmt: skip
        new = self.path.with_suffix(".new")
        new.write_text(text)
        new.replace(self.path)  # a browser never reads half of it
        self._written = time.monotonic()


def rings_of(site: LiveSite) -> RingMessages:
    """Where the messages of the running jobs go, by what the switches answered last."""
    assert site.followed.routes
    jobs = (make_job(job.number, list(job.terminals)) for job in site.jobs.running)
    return ring_messages(site.fabric, JobMix(tuple(jobs)), site.followed.routes)


def _fabric(site: LiveSite) -> dict[str, Any]:
    fabric, rings = site.fabric, rings_of(site)
    leaves = sorted(set(fabric.terminal_switch.tolist()))
    spines = [s for s in range(fabric.switches) if s not in leaves]
    place = {
        switch: (_WIDTH * (n + 0.5) / len(row), y)
        for row, y in ((spines, _SPINE_Y), (leaves, _LEAF_Y))
        for n, switch in enumerate(row)
    }
    cables = []
    for channel in range(fabric.channels):
        ends = [int(fabric.channel_source[channel]), int(fabric.channel_target[channel])]
        (x1, y1), (x2, y2) = (place[end] for end in ends)
        side = 3 if y1 > y2 else -3  # a line for each direction
        messages = (rings.channel == channel).any(axis=0)
        parts = sorted(set(rings.part[messages].tolist()))
        pulled = (ends[0], int(fabric.channel_port[channel])) in site.pulled
        cables.append((x1 + side, y1, x2 + side, y2, parts, pulled))
    job_of = {t: n for n, job in enumerate(site.jobs.running) for t in job.terminals}
    hosts = []
    for leaf in leaves:
        own = [t for t in range(fabric.terminals) if fabric.terminal_switch[t] == leaf]
        for n, t in enumerate(own):
            x = place[leaf][0] + 34 * (n - (len(own) - 1) / 2)
            hosts.append((x, fabric.terminal_host[t], job_of.get(t, -1), place[leaf][0]))
    switches = [(*xy, fabric.switch_name[s]) for s, xy in place.items()]
    # Those on which messages meet are drawn last, on top.
    return {
        "cables": sorted(cables, key=lambda c: (len(c[4]), c[5])),
        "hosts": hosts,
        "switches": switches,
    }


def _job(number: int, job: MpiJob) -> dict[str, Any]:
    shown = [iteration.seconds for iteration in job.iterations[-_SHOWN:]]
    return {"number": number, "id": job.number, "hosts": len(job.terminals), "seconds": shown,
            "count": len(job.iterations), "most": max(shown, default=1.0)}  # fmt: skip
