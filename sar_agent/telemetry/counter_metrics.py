"""Metrics of what ports counted, beside what was predicted."""

from __future__ import annotations

from contextlib import suppress
from time import time

from prometheus_client import Gauge

from sar_agent.counters.compare import Comparison
from sar_agent.telemetry.declare import MetricGroup, gauge


class CounterMetrics(MetricGroup):
    """What ports counted, beside what was predicted; no series while `counters.source` is off."""

    counters_usable = gauge("1 if the last window of counters could be used, else 0.", source=())
    counters_window_end_timestamp_seconds = gauge(
        "Unix time at which the last window that could be used ended.", source=()
    )
    counters_known_ratio = gauge("Share of live channels whose counters could be used.", source=())
    counted_load_max = gauge("Largest share of its speed that a channel carried.", source=())
    counted_load_mean = gauge("Mean share of their speed that channels carried.", source=())
    prediction_rank_correlation = gauge(
        "Rank correlation (Spearman) of predicted load and counted bytes over live channels.",
        source=(),
    )
    prediction_top_ratio = gauge(
        "Share of the channels in the counted top 1 % that were predicted in the top 5 %.",
        source=(),
    )
    unexplained_hot_links = gauge(
        "Channels that carried much more than the traffic of the known jobs explains.", source=()
    )
    measured_job_weight_mean = gauge(
        "Mean over jobs of the share of full speed at which their ports send.", source=()
    )

    def show_left_out(self, source: str) -> None:
        """The last window of counters could not be used."""
        self.counters_usable.labels(source).set(0)

    def show_comparison(self, source: str, comparison: Comparison) -> None:
        """Sets what a window showed; what it does not show has no series."""
        weights = [job.weight for job in comparison.jobs if job.weight is not None]
        values: dict[Gauge, float | None] = {
            self.counters_usable: 1.0,
            self.counters_window_end_timestamp_seconds: time() - comparison.age,
            self.counters_known_ratio: comparison.known / max(1, comparison.links),
            self.counted_load_max: comparison.counted_max,
            self.counted_load_mean: comparison.counted_mean,
            self.prediction_rank_correlation: comparison.rank,
            self.prediction_top_ratio: comparison.top,
            self.unexplained_hot_links: comparison.hot_links,
            self.measured_job_weight_mean: sum(weights) / len(weights) if weights else None,
        }
        for metric, value in values.items():
            if value is not None:
                metric.labels(source).set(value)
            else:
                with suppress(KeyError):
                    metric.remove(source)
