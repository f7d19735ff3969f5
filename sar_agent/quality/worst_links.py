"""The link that holds a job up most, and the jobs that share a link."""

from __future__ import annotations

import numpy as np

from sar_agent.quality.channel_traffic import I64, Traffic


def worst_channels(traffic: Traffic, *, by_load: bool) -> I64:
    """int64[J]: of each job the channel with the largest load, or with most routes, of those that
    it uses; the other one decides among equals. -1 for a job that uses none."""
    parts = (traffic.load, traffic.job_load), (traffic.efi, traffic.job_efi)
    (first, most), (second, _) = parts if by_load else parts[::-1]
    worst = np.full(len(traffic.mix.jobs), -1, np.int64)
    lists = traffic.lists if by_load else traffic.every
    links, channel = np.diff(lists.offset), lists.channel[: lists.offset[-1]]
    hot = first[channel] == np.repeat(most, links)
    job, channel = np.repeat(np.arange(len(links)), links)[hot], channel[hot]
    # The lowest channel comes first, so that equals give the same answer each time.
    order = np.lexsort((channel, -second[channel], job))
    job, at = np.unique(job[order], return_index=True)
    worst[job] = channel[order[at]]
    return worst


def users_of(traffic: Traffic, channel: int, *, sent: bool = True) -> list[tuple[int, int]]:
    """(the index of a job or part in the mix, its routes over the channel), those with most routes
    first; only routes on which it sends, or all inside the job."""
    lists = traffic.lists if sent else traffic.every
    at = np.flatnonzero(lists.channel[: lists.offset[-1]] == channel)
    owner = np.searchsorted(lists.offset, at, side="right") - 1
    routes = lists.routes[at].astype(np.int64)
    order = np.argsort(-routes, kind="stable")
    return [(int(owner[i]), int(routes[i])) for i in order]


def jobs_over(traffic: Traffic, channel: int, *, sent: bool = True) -> dict[str, int]:
    """The ids of the jobs with routes over the channel, and how many, as `users_of`."""
    found: dict[str, int] = {}
    for j, routes in users_of(traffic, channel, sent=sent):
        job = traffic.mix.jobs[j].id
        found[job] = found.get(job, 0) + routes
    return dict(sorted(found.items(), key=lambda each: -each[1]))
