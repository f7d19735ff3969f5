"""The JSON objects of the page, each made of one snapshot; `json_keys.toml` explains their keys."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from sar_agent.demand.collectives import COLLECTIVES, PAIRWISE
from sar_agent.fabric.model import F64
from sar_agent.quality.channel_traffic import Traffic
from sar_agent.quality.ring_messages import ring_sentence
from sar_agent.quality.worst_links import jobs_over
from sar_agent.reports.spread import planned_jobs
from sar_agent.services.live_page.cells import HeatCells, thousandths
from sar_agent.services.live_page.collisions import collisions_box
from sar_agent.services.live_page.snapshot import PageSnapshot

MEASURES = ("load_max", "lower_bound_load_max", "dark_fiber_ratio", "throughput_min", "switches",
            "terminals", "channels")  # fmt: skip
MOST_JOBS = 2000
"""Jobs in `api/state.json`, those with the largest predicted load."""
MOST_PENDING, LINKS_OF_PENDING = 10, 3
"""Pending jobs, the soonest first, and links that each will share, the fullest first."""


def state_answer(page: PageSnapshot, traffic: Traffic | None) -> dict[str, Any]:
    """What is wrong, what is in force, the jobs and the last decisions."""
    jobs: list[dict[str, Any]] = []
    measures = _fields(page.measures, MEASURES)
    if page.fabric is not None and page.load is not None and traffic is not None:
        slow = {word: _times(traffic, word).tolist() for word in COLLECTIVES}
        measures |= _phases(traffic)
        for j, job in enumerate(traffic.mix.whole_jobs):
            links = traffic.links_of(traffic.mix.parts_of(job.id))
            if not len(links):
                continue
            worst = int(links[np.argmax(page.load[links])])
            contention = {word: each[j] for word, each in slow.items()}
            jobs.append(
                {
                    "job": job.id,
                    "links": len(links),
                    "worst_link": page.fabric.channel_name(worst),
                    "predicted": float(page.load[worst]),
                    "ports": len(job.terminals),
                    "switches": len(np.unique(traffic.fabric.terminal_switch[job.terminals])),
                    "phase_contention": contention[PAIRWISE],
                    "contention": contention,
                }
            )
        jobs.sort(key=lambda job: (-job["predicted"], job["job"]))
    names = ("at", "interval", "version", "mode", "engine", "result", "sentence", "in_force")
    return _fields(page, names) | {
        "snapshot": page.number,
        "wrong": [asdict(trouble) for trouble in page.troubles],
        "fabric": page.fabric.digest.hex()[:16] if page.fabric else None,
        "measures": measures,
        "planned": _planned(page),
        "rings": _rings(page),
        "saved": page.saved(),
        "jobs": jobs[:MOST_JOBS],
        "pending": _pending(page, traffic),
        "pending_total": len(page.pending),
        "jobs_total": len(page.mix.whole_jobs) if page.mix else 0,
        "decisions": list(page.decisions),
        "sources": {name: {"at": at, "stale": stale} for name, (at, stale) in page.sources.items()},
        "boxes": [
            asdict(box) for box in (*page.boxes, collisions_box(page, traffic)) if box is not None
        ],
    }


def _fields(values: object, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(values, name) for name in names} if values else {}


def _phases(traffic: Traffic) -> dict[str, float]:
    each = _times(traffic, PAIRWISE)
    return {
        "phase_contention_mean": float(each.mean()) if len(each) else 1.0,
        "phase_contention_max": float(each.max(initial=1.0)),
    }


def _times(traffic: Traffic, collective: str) -> F64:
    return traffic.mix.largest(traffic.contention(collective))


def _rings(page: PageSnapshot) -> str:
    """What rings take by the tables in force, and by those planned; empty where not known."""
    if page.measures is None:
        return ""
    return ring_sentence(page.measures, page.planned[0] if page.planned else None)


def _pending(page: PageSnapshot, traffic: Traffic | None) -> list[dict[str, Any]]:
    if traffic is None or not page.pending:
        return []
    found = planned_jobs(traffic, page.pending, MOST_PENDING, LINKS_OF_PENDING)
    return [{k: v for k, v in asdict(job).items() if k != "user"} for job in found]


def _planned(page: PageSnapshot) -> dict[str, float]:
    if page.planned is None:
        return {}
    measures, traffic = page.planned
    return _fields(measures, ("load_max", "dark_fiber_ratio", "throughput_min")) | _phases(traffic)


def loads_answer(page: PageSnapshot, cells: HeatCells) -> dict[str, Any]:
    """Predicted load of every cell, in thousandths of its speed."""
    return {
        "snapshot": page.number,
        "fabric": cells.digest,
        "predicted": None if page.load is None else thousandths(page.load[cells.channel]),
    }


def job_answer(job: str, cells: HeatCells, traffic: Traffic) -> dict[str, Any] | None:
    """The cells that a job uses; None where there is no such multi-switch job."""
    parts = traffic.mix.parts_of(job)
    if not parts:
        return None
    used = cells.cell[traffic.links_of(parts)]
    terminals = traffic.mix.jobs[parts[0]].whole.terminals.tolist()
    hosts = {traffic.fabric.terminal_host[t] for t in terminals}
    return {"job": job, "cells": np.sort(used[used >= 0]).tolist(), "hosts": sorted(hosts)}


def link_answer(
    link: int, page: PageSnapshot, cells: HeatCells, traffic: Traffic | None
) -> dict[str, Any] | None:
    """One cell: its name, its loads, and the jobs that use it; None where there is no such cell."""
    if not 0 <= link < len(cells.channel):
        return None
    c = int(cells.channel[link])
    users: list[dict[str, Any]] = []
    if traffic is not None:
        users = [
            {"job": job, "routes": routes, "since": page.starts.get(job)}
            for job, routes in jobs_over(traffic, c).items()
        ]
    return {
        "link": link,
        "name": cells.fabric.channel_name(c),
        "rate": float(cells.fabric.channel_rate[c]),
        "predicted": None if page.load is None else float(page.load[c]),
        "jobs": users,
    }
