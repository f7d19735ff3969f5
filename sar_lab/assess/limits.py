"""What the numbers do not say: sentences that hold for what was given."""

from __future__ import annotations

from sar_lab.assess.host_ports import shared_hosts
from sar_lab.assess.rate import Ratings
from sar_lab.assess.site_data import SiteData

FAST = 200.0
"""Gbit/s: HDR and NDR switches can route adaptively."""


def limits_of(given: SiteData, ratings: Ratings, adaptive: bool) -> tuple[str, ...]:
    """In the order in which they matter."""
    before, after = ratings.before, ratings.after
    found = []
    if given.synthetic:
        found.append("The jobs are made up; your own queue gives your own numbers.")
    if ratings.assumed:
        found.append(
            f"No tables of yours were given, so they are compared with {before.name}, the better "
            "of what OpenSM runs where nobody chose (minhop, or ftree on a fat tree), as our own "
            "version of it routes (ties between ports fall otherwise than in OpenSM, and better "
            "from three levels on). Give --routes opensm-lfts.dump to be sure."
        )
    elif before.verdict.unreachable_pairs:
        found.append(
            f"In today's tables {before.verdict.unreachable_pairs:,} pairs do not reach "
            f"({before.verdict.problems[0]}); is the dump of the same day as the fabric?"
        )
    elif not before.verdict.passed:
        found.append(
            f"Today's tables: {before.verdict.problems[0]}. A dump of tables holds no service "
            "levels; where OpenSM uses several lanes, put its psl and slvl files beside the dump."
        )
    found.append(
        "Only the time that jobs spend sending gets shorter, not what they compute. A job that "
        "sends for a fifth of its time gains a fifth of the number above."
    )
    found.append(
        "The number holds for traffic that is all under way at once (all-to-all with messages "
        "posted together). Programs that send one message at a time, phase after phase, hardly "
        "gain (docs/load-is-time.md)."
    )
    if hosts := shared_hosts(given.fabric, given.mix):
        found.append(
            f"{hosts} hosts run several jobs that span switches; what these wait for each other at "
            "the hosts' own cables is part of the times, and no routes change it."
        )
    if before.simulated is None and given.mix.jobs:
        found.append(
            "Times are what the fullest link on a job's way says, since the traffic was not "
            "simulated; that is rather too much, before and after."
        )
    if not adaptive:
        fast = float(given.fabric.terminal_rate.max(initial=0.0)) >= FAST
        found.append(
            (
                "This network's switches are of a generation that can route adaptively. "
                if fast
                else ""
            )
            + "Where adaptive routing is in force, static tables gain nothing; say so with "
            "--adaptive, and check with `ibdiagnet` or your subnet manager's settings."
        )
    found.append(
        "Storage and other traffic is routed, but not counted, and jobs whose links idle anyway "
        "gain nothing: the port counters (perfquery) know how full your links are."
    )
    if after and after.routes.needs_host_levels:
        found.append(
            f"{after.name} needs {after.routes.virtual_lanes} virtual lanes, chosen by the service "
            "level of path records; hosts must ask for them (docs/lanes.md)."
        )
    found.append("The routes must follow the jobs as they come and go; the agent does that.")
    return tuple(found)
