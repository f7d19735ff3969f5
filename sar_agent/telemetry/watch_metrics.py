"""Metrics of the watched cables: numbers of cables and jobs, no names."""

from __future__ import annotations

from sar_agent.telemetry.declare import MetricGroup, counter, gauge

CABLE_KINDS = ("errors", "flapping", "missing", "degraded", "unlike")
"""`cable_watch.watch.Kind`, a type above this one."""


class WatchMetrics(MetricGroup):
    """Cables, and what they lose."""

    bad_cables = gauge(
        "Cables that are bad now, by kind: errors counts errors; flapping goes down again and "
        "again; missing was there when the agent looked before; degraded became slower or fewer "
        "than its like; unlike was so when the agent first looked.",
        kind=CABLE_KINDS,
    )
    bad_cables_with_jobs = gauge(
        "Those of them over which routes of running jobs lead, or on whose hosts jobs run.",
        kind=CABLE_KINDS,
    )
    bad_cable_jobs = gauge("Running jobs that bad cables hurt, without those of kind unlike.")
    cable_events = counter(
        "Cables that went bad, and that were well again, by kind.",
        kind=CABLE_KINDS,
        event=("bad", "well"),
    )
    link_lost_bits_per_second_max = gauge(
        "Most bandwidth that a link between switches lost by waiting (PortXmitWait), bits a second."
    )
    link_lost_ratio_max = gauge(
        "The most that a link between switches lost by waiting, as a share of its speed."
    )
    job_lost_bits_per_second_max = gauge(
        "Most bandwidth that the links of one running multi-switch job lost by waiting, together; "
        "a link of several jobs counts for each."
    )
    counters_read_ratio = gauge(
        "Share of the live links between switches of which counters were read in the last window."
    )
