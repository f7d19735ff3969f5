"""Limits of an assessment: the sentences that apply to the given site data."""

from __future__ import annotations

from sar_agent.util.plural import plural
from sar_lab.assess.host_ports import shared_hosts
from sar_lab.assess.rate import Ratings
from sar_lab.assess.site_data import SiteData
from sar_lab.assess.traffic_classes import is_fast


def limits_of(given: SiteData, ratings: Ratings, adaptive: bool) -> tuple[str, ...]:
    """The sentences, the most important first."""
    before, after = ratings.before, ratings.after
    sentences = []
    if given.synthetic:
        sentences.append(
            "The jobs are synthetic; give --jobs your own queue for numbers of your own."
        )
    if ratings.assumed:
        sentences.append(
            f"You gave no forwarding tables, so the comparison is with those of {before.name}: "
            f"{ratings.why}. Give --routes opensm-lfts.dump for a comparison with what is "
            "installed."
        )
    elif before.verdict.unreachable_pairs:
        sentences.append(
            f"In today's tables {before.verdict.unreachable_pairs:,} pairs of ports do not reach "
            f"each other ({before.verdict.problems[0]}). Were the tables and the fabric dumped on "
            "the same day?"
        )
    elif not before.verdict.passed:
        sentences.append(
            f"Today's tables: {before.verdict.problems[0]}. A dump of tables holds no service "
            "levels; if OpenSM uses several virtual lanes, put its psl and slvl files beside the "
            "dump."
        )
    sentences.append(
        "Only the time that jobs spend sending gets shorter, not the time that they compute. A job "
        "that sends for a fifth of its time gains (or loses) a fifth of the numbers above."
    )
    sentences.append(
        "Few programs send all messages at once (an all-to-all whose messages are posted "
        "together). Most send one at a time: rings, halo exchanges, and all-to-alls of large "
        "messages in Open MPI. Yours lie between the two (docs/load-is-time.md)."
    )
    if hosts := shared_hosts(given.fabric, given.mix):
        sentences.append(
            f"{plural(hosts, 'host runs', 'hosts run')} several jobs that span switches. These "
            "jobs wait for each other at "
            "the hosts' own cables; that is part of the times, and no routing changes it."
        )
    if before.simulated is None and given.mix.jobs:
        sentences.append(
            "The traffic was not simulated, so the saving may be less than this page says. Times "
            "follow from the fullest link on a job's routes, and with one message at a time from "
            "phase contention (docs/metrics-explained.md), which overestimates them somewhat, "
            "before and after. --simulate goes on until the simulation is done."
        )
    if not adaptive:
        fast = is_fast(given.fabric)
        sentences.append(
            (
                "This network's switches are of a generation that can route adaptively. "
                if fast
                else ""
            )
            + "Traffic that switches route adaptively gains little from new tables. Check your "
            "subnet manager's settings (routing_engine ar_…, ar_sl_mask); if they enable it, give "
            "--adaptive."
        )
    sentences.append(
        "Storage and other traffic is routed, but not counted. Jobs whose links idle anyway gain "
        "nothing; the port counters (perfquery) show how full your links are."
    )
    if after and after.routes.needs_host_levels:
        sentences.append(
            f"{after.name} needs {after.routes.virtual_lanes} virtual lanes, chosen by the service "
            "level of path records; hosts must ask for them (docs/lanes.md)."
        )
    sentences.append("Routes must change as jobs start and end; the agent does that.")
    return tuple(sentences)
