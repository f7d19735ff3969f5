"""Makes sar-agent.json with Grafana's own typed builder: python deploy/grafana/dashboard.py.

Needs `grafana-foundation-sdk`. Sites import the JSON; only changes of the dashboard need this file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import NamedTuple

from grafana_foundation_sdk.builders import common
from grafana_foundation_sdk.builders import dashboard as board
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.stat import Panel as StatPanel
from grafana_foundation_sdk.builders.timeseries import Panel as TimePanel
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueTextMode,
    LegendDisplayMode,
    LegendPlacement,
    TooltipDisplayMode,
)

FILE = Path(__file__).with_name("sar-agent.json")
SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
OBSERVING = "2 * (1 - sar_agent_install_mode)"
"""Added to a 0 or 1, so that observe mode has values of its own: 2 and 3."""


LIVE, SHADOW = "sar_agent_install_mode == 1", "sar_agent_install_mode == 0"
OURS = f'{LIVE} and on (instance) sar_agent_engine_in_force{{engine="sar"}} == 1'
"""While the agent's own routes are in force: other moments say nothing of what they have saved."""


def _saved(share: Callable[[str, str, str], str]) -> str:
    """`share` of two sets of routes and of the moments that count: live of the baseline and those
    in force, in observe mode of those in force and the plans."""
    live, shadow = share("baseline", "in_force", OURS), share("in_force", "planned", SHADOW)
    return f"({live} and on (instance) {LIVE}) or ({shadow} and on (instance) {SHADOW})"


def _mean(metric: str, routes: str, when: str) -> str:
    counted = f'sar_agent_{metric}routes="{routes}"}} and on (instance) ({when})'
    return f"avg by (instance) (avg_over_time(({counted})[30d:5m]))"


AT_ONCE = "job_throughput_mean_ratio{"
PHASES = 'collective_contention_mean{collective="pairwise",'
SAVED = {
    "all messages at once": _saved(
        lambda a, b, when: f"1 - {_mean(AT_ONCE, a, when)} / {_mean(AT_ONCE, b, when)}"
    ),
    "one message at a time": _saved(
        lambda a, b, when: f"1 - {_mean(PHASES, b, when)} / {_mean(PHASES, a, when)}"
    ),
}
START = 'process_start_time_seconds{job="sar-agent"}'


class Panel(NamedTuple):
    """Title, description, unit, and queries with their legends; `I` in a query is the instance."""

    title: str
    description: str
    unit: str
    queries: dict[str, str]
    width: int = 8
    height: int = 7
    least: float = 0
    """Lower end of the axis."""


TOP = (
    Panel("Dark fiber", "Share of links that no running job can use. Lower is better: if planned "
          "is below in_force, the difference is the gain that you do not have yet.", "percentunit",
          {"sar_agent_dark_fiber_ratio": "{{routes}}"}, 12, 8),
    Panel("Largest effective EFI", "Routes inside jobs over the busiest link. Lower is better; no "
          "routing over shortest paths goes below the bound.", "short",
          {"sar_agent_effective_efi_max": "{{routes}}",
           "sar_agent_lower_bound_effective_efi_max": "lower bound"}, 12, 8),
    Panel("Jobs, hosts and ports", "Unknown hosts and ports should be near 0.", "short",
          {"sar_agent_multi_switch_jobs": "multi-switch jobs",
           "sar_agent_unknown_hosts": "unknown hosts",
           "sar_agent_unknown_terminals": "unknown HCA ports"}),
    Panel("Reroutes per hour", "By reason and result. Many small ones: raise min_job_age_seconds.",
          "short", {"sum by (reason, result) (increase(sar_agent_reroutes_total[1h]))":
                    "{{reason}}: {{result}}"}),
    Panel("Duration of stages, last pass", "Which part of a pass takes the time.", "s",
          {"sar_agent_stage_last_seconds": "{{stage}}"}),
)  # fmt: skip
ROWS: dict[str, tuple[Panel, ...]] = {
    "Jobs": (
        Panel("Jobs' largest effective EFI", "Routes on the busiest link of each job.", "short",
              {"histogram_quantile(0.5, sum by (routes, le) "
               "(sar_agent_job_effective_efi_max_bucket))": "median, {{routes}}",
               "histogram_quantile(0.95, sum by (routes, le) "
               "(sar_agent_job_effective_efi_max_bucket))": "95th percentile, {{routes}}"}, 6),
        Panel("Links per job", "Channels between switches that the routes of a job cross.", "short",
              {"histogram_quantile(0.5, sum by (routes, le) (sar_agent_job_links_bucket))":
               "median, {{routes}}",
               "sar_agent_job_links_sum / sar_agent_job_links_count": "mean, {{routes}}"}, 6),
        Panel("Share of full speed", "All messages at once, in all jobs; higher is better.",
              "percentunit", {"sar_agent_job_throughput_mean_ratio": "mean, {{routes}}",
                              "sar_agent_job_throughput_min_ratio": "worst job, {{routes}}"}, 6),
        Panel("One message at a time", "How many times as long as without contention; lower is "
              "better.", "none",
              {'sar_agent_collective_contention_mean{collective=~"pairwise|ring"}':
               "{{collective}}: mean, {{routes}}",
               'sar_agent_collective_contention_max{collective=~"pairwise|ring"}':
               "{{collective}}: worst job, {{routes}}"}, 6, least=1),
    ),
    "Routes": (
        Panel("Mean effective EFI", "Routes inside jobs over an average link.", "short",
              {"sar_agent_effective_efi_mean": "{{routes}}"}, 6),
        Panel("Largest load", "Of a link while all jobs do an all-to-all; 1 is a full link.",
              "none", {"sar_agent_channel_load_max": "{{routes}}",
                       "sar_agent_lower_bound_channel_load_max": "lower bound"}, 6),
        Panel("Forwarding-table entries changed", "How much reroutes change under running jobs.",
              "short", {"sar_agent_last_reroute_entries_changed": "last reroute",
                        "sar_agent_last_reroute_blocks_changed": "last reroute, blocks of 64",
                        "increase(sar_agent_lft_entries_changed_total[1h])": "last hour"}, 6),
        Panel("Transitions per hour", "Plans by the kind of transition; unsafe ones are not "
              "installed.", "short",
              {"sum by (kind) (increase(sar_agent_transitions_total[1h]))": "{{kind}}"}, 6),
    ),
    "Cables": (
        Panel("Bad cables with running jobs", "The agent's page names them; unlike were so when "
              "it first looked.", "short",
              {"sar_agent_bad_cables_with_jobs": "{{kind}}",
               "sar_agent_bad_cable_jobs": "jobs on them"}, 6),
        Panel("Cables that went bad, per hour", "And that were well again.", "short",
              {"sum by (kind, event) (increase(sar_agent_cable_events_total[1h]))":
               "{{kind}}: {{event}}"}, 6),
        Panel("Bandwidth lost by waiting", "PortXmitWait as bits a second, of the worst link and "
              "of the links of the worst job together.", "bps",
              {"sar_agent_link_lost_bits_per_second_max": "link",
               "sar_agent_job_lost_bits_per_second_max": "job"}, 6),
        Panel("Jobs that meet others", "By pattern: messages that share a link with others.",
              "short", {"sar_agent_collective_meeting_jobs": "{{collective}}, {{routes}}"}, 6),
    ),
    "The agent": (
        Panel("Age of sources", "Of files, since they were written.", "s",
              {"time() - (sar_agent_source_timestamp_seconds > 0)": "{{source}}"}, 6),
        Panel("Duration of stages, 95th percentile", "Over 15 minutes.", "s",
              {"histogram_quantile(0.95, sum by (stage, le) "
               "(rate(sar_agent_stage_seconds_bucket[15m])))": "{{stage}}"}, 6),
        Panel("Processor", "Cores that the agent uses.", "none",
              {"rate(process_cpu_seconds_total{job=\"sar-agent\"}[5m])": "cores"}, 6),
        Panel("Memory", "Resident memory of the agent.", "bytes",
              {"process_resident_memory_bytes{job=\"sar-agent\"}": "resident"}, 6),
        Panel("Fabric", "When it was last read.", "short",
              {"sar_agent_fabric_switches": "switches", "sar_agent_fabric_terminals": "ports",
               "sar_agent_fabric_channels": "live channels"}, 12),
        Panel("Problems per hour", "Failed checks and unexpected errors; both should be 0.",
              "short", {"increase(sar_agent_check_failures_total[1h])": "failed checks",
                        "sum by (where) (increase(sar_agent_unexpected_errors_total[1h]))":
                        "error in {{where}}"}, 12),
    ),
    "Slurm's events": (
        Panel("Events per minute", "Accepted messages: about two a job with Slurm's hooks.",
              "short", {"60 * sum by (event) (rate(sar_agent_events_total[5m]))": "{{event}}"}, 6),
        Panel("Refused events per minute", "By reason; docs/troubleshooting.md explains each.",
              "short", {"60 * sum by (reason) (rate(sar_agent_events_refused_total[5m]))":
                        "{{reason}}"}, 6),
        Panel("Delay of events", "95th percentile, by the clocks of both machines.", "s",
              {"histogram_quantile(0.95, sum by (le) "
               "(rate(sar_agent_event_delay_seconds_bucket[5m])))": "95th percentile"}, 6),
        Panel("Jobs reported", "Since the queue was last read.", "short",
              {"sar_agent_events_waiting": "jobs"}, 6),
    ),
    "Routing keys": (
        Panel("Keys and LID offsets", "Some offsets should be free; lost keys have no routes.",
              "short", {"sar_agent_key_leases": "keys leased",
                        "sar_agent_key_offsets_free": "LID offsets free",
                        "sar_agent_key_offsets": "LID offsets for keys",
                        "sar_agent_keys_lost": "keys lost"}, 6),
        Panel("Most flows on one link", "one at 1: flows of a job do not meet inside a phase; all "
              "above it: keys of several jobs share a link.", "short",
              {"sar_agent_key_flows_max": "{{keys}}"}, 6),
        Panel("Key installs per hour", "By result.", "short",
              {"sum by (result) (increase(sar_agent_key_installs_total[1h]))": "{{result}}"}, 6),
        Panel("Time to a key", "From the request until it is in force, 95th percentile.", "s",
              {"histogram_quantile(0.95, sum by (le) (rate(sar_agent_key_seconds_bucket[1h])))":
               "95th percentile"}, 6),
    ),
    "Five-phase updates": (
        Panel("Subscribers", "Processes that leave LID offset 0 when asked.", "short",
              {"sar_agent_subscribers": "subscribers"}, 6),
        Panel("Phase", "0 idle, 1 unpath, 2 install, 3 repath; above 0 for moments only.", "none",
              {"sar_agent_update_phase": "phase"}, 6),
        Panel("Updates per hour", "By method and result.", "short",
              {"3600 * sum by (method, result) (rate(sar_agent_updates_total[1h]))":
               "{{method}}: {{result}}"}, 6),
        Panel("Duration of phases", "95th percentile.", "s",
              {"histogram_quantile(0.95, sum by (phase, le) "
               "(rate(sar_agent_update_phase_seconds_bucket[1h])))": "{{phase}}"}, 6),
    ),
}  # fmt: skip


def dashboard() -> str:
    """The JSON of the dashboard."""
    made = (
        board.Dashboard("sar-agent")
        .uid("sar-agent")
        .description(
            "Am I healthy, what do I gain, why? The pages are docs/dashboard.md and "
            "docs/reference/metrics.md."
        )
        .tags(["infiniband", "slurm"])
        .timezone("browser")
        .refresh("30s")
        .time("now-6h", "now")
        .editable()
        .with_variable(
            board.DatasourceVariable("datasource").label("Prometheus").type("prometheus")
        )
        .with_variable(
            board.QueryVariable("instance")
            .label("Agent")
            .datasource(SOURCE)
            .query("label_values(sar_agent_build_info, instance)")
            .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(models.VariableSort.ALPHABETICAL_ASC)
        )
        .annotation(
            board.AnnotationQuery()
            .name("Reroutes")
            .datasource(SOURCE)
            .enable(True)
            .icon_color("blue")
            .expr(
                _of_instance("sum by (reason, result) (changes(sar_agent_reroutes_total[1m])) > 0")
            )
        )
    )
    number = count(1)
    for panel in [*_stats(), *map(_graph, TOP)]:
        made = made.with_panel(panel.id(next(number)))
    for title, panels in ROWS.items():
        row = board.Row(title).collapsed(True).id(next(number))
        for each in panels:
            row = row.with_panel(_graph(each).id(next(number)))
        made = made.with_row(row)
    return JSONEncoder(sort_keys=True, indent=1).encode(made.build()) + "\n"


def _of_instance(query: str) -> str:
    """The query for the chosen agent: each metric gets the label."""
    chosen = 'instance="$instance"'
    query = re.sub(r"\b((?:sar_agent|process)_\w+)\{", rf"\1{{{chosen},", query)
    return re.sub(r"\b((?:sar_agent|process)_\w+)\b(?![{\w])", rf"\1{{{chosen}}}", query)


def _targets(panel: StatPanel | TimePanel, queries: dict[str, str]) -> StatPanel | TimePanel:
    for letter, (query, legend) in zip("ABCDEFG", queries.items(), strict=False):
        panel = panel.with_target(
            Dataquery()
            .ref_id(letter)
            .datasource(SOURCE)
            .expr(_of_instance(query))
            .legend_format(legend)
        )
    return panel


def _graph(given: Panel) -> TimePanel:
    panel = (
        TimePanel()
        .title(given.title)
        .description(given.description)
        .unit(given.unit)
        .datasource(SOURCE)
        .span(given.width)
        .height(given.height)
        .line_width(2)
        .fill_opacity(8)
        .min(given.least)
        .axis_soft_max(1)  # counts that are 0 all day: not an axis up to 100
        .legend(
            common.VizLegendOptions()
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
            .show_legend(True)
        )
        .tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
    )
    return _targets(panel, given.queries)


def _stats() -> Iterable[StatPanel]:
    for title, saved in SAVED.items():
        yield _stat(f"Time saved: {title}", "Of what jobs spend sending, the mean of 30 days: live "
                    "against the tables of agent.baseline, while routes of the agent were in "
                    "force; in observe mode what the plans would save, while it observed.",
                    {saved: ""}, {}, unit="percentunit",
                    steps=((None, "red"), (-0.01, "text"), (0.01, "green"))).span(12)  # fmt: skip
    yield _stat("Routes in force", "Whose tables OpenSM uses. Observe mode installs nothing.",
                {f'sum(sar_agent_engine_in_force{{engine="sar"}}) + sum({OBSERVING})': ""},
                {"0": ("other engine", "red"), "1": ("sar-agent", "green"),
                 "2": ("observing", "blue"), "3": ("observing", "blue")})  # fmt: skip
    yield _stat("Engine in force", "The routing engine that made the tables that OpenSM uses.",
                {"sar_agent_engine_in_force == 1": "{{engine}}"}, {}, name=True)  # fmt: skip
    yield _stat("In force − installed", "Generations: 0 if OpenSM uses what the agent installed "
                "last; always 0 in observe mode.",
                {"(sar_agent_generation_in_force - sar_agent_generation_installed) * "
                 "sar_agent_install_mode": ""},
                {}, steps=((None, "red"), (0, "green"), (1, "red")))  # fmt: skip
    yield _stat("Multi-switch jobs", "Running jobs on at least two leaf switches; routes matter to "
                "these.", {"sar_agent_multi_switch_jobs": ""}, {})  # fmt: skip
    yield _stat("Since the last success", "Time since a pass last succeeded, or since the start.",
                {"time() - (sar_agent_last_success_timestamp_seconds > 0 or on (instance) "
                 f"{START})": ""},
                {}, unit="s", steps=((None, "green"), (300, "orange"), (3600, "red")))  # fmt: skip
    yield _stat("Reachable", "Whether Slurm and OpenSM's plugin answered last time. Observe mode "
                "works without the plugin.",
                {"sar_agent_slurm_reachable": "Slurm",
                 f"sar_agent_sm_reachable + (1 - sar_agent_sm_reachable) * {OBSERVING}": "OpenSM"},
                {"0": ("no", "red"), "1": ("yes", "green"), "2": ("not used", "blue")})  # fmt: skip


def _stat(
    title: str,
    description: str,
    queries: dict[str, str],
    words: dict[str, tuple[str, str]],
    *,
    unit: str = "none",
    steps: tuple[tuple[float | None, str], ...] = ((None, "text"),),
    name: bool = False,
) -> StatPanel:
    panel = (
        StatPanel()
        .title(title)
        .description(description)
        .unit(unit)
        .datasource(SOURCE)
        .span(4)
        .height(4)
        .text(common.VizTextDisplayOptions().value_size(30))  # the largest that fits "other engine"
        .color_mode(BigValueColorMode.BACKGROUND if words or len(steps) > 1
                    else BigValueColorMode.NONE)
        .text_mode(BigValueTextMode.NAME if name else
                   BigValueTextMode.VALUE_AND_NAME if len(queries) > 1 else BigValueTextMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .thresholds(board.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(
            [models.Threshold(value=value, color=color) for value, color in steps]))
    )  # fmt: skip
    if words:
        options = {
            value: models.ValueMappingResult(text=text, color=color, index=place)
            for place, (value, (text, color)) in enumerate(words.items())
        }
        panel = panel.mappings([models.ValueMap(options=options)])
    return _targets(panel, queries)


if __name__ == "__main__":
    if sys.argv[1:] == ["-"]:
        print(dashboard(), end="")
    else:
        FILE.write_text(dashboard(), encoding="utf-8")
