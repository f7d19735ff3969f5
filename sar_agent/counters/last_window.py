"""The last window of counters, for the page and the history; and windows in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sar_agent.counters.compare import Comparison
from sar_agent.counters.window import CounterWindow


@dataclass(eq=False)
class LastWindow:
    """What counters showed last; it stays empty where nobody reads counters."""

    comparison: Comparison | None = None
    """Of the last window that could be used."""
    window: CounterWindow | None = None
    """The same window, on the channels of the fabric whose digest is `cables`."""
    cables: bytes = b""
    ended_at: float = 0.0
    """When it ended, Unix seconds."""
    problem: str = ""
    """Why the newest window could not be used; empty where it could, or is not complete."""
    why_not: str = "no counters are read: counters.source is off"
    """Why there is no window, where nothing is wrong."""

    def summary(self) -> dict[str, Any] | None:
        """For the history; None where no window could be used."""
        if self.comparison is None:
            return None
        names = ("rank", "top", "counted_max", "hot_links")
        return {name: getattr(self.comparison, name) for name in names}


def hot_words(comparison: Comparison) -> str:
    """A sentence on links that are hot without a known reason; empty where there is none."""
    if not comparison.hot_links:
        return ""
    shown = "; ".join(
        f"{link.link} carried {link.counted:.0%} of its speed where the jobs explain "
        f"{link.explained:.0%}"
        for link in comparison.hot[:3]
    )
    more = comparison.hot_links - min(3, len(comparison.hot))
    return f"hot but not predicted: {shown}" + (f"; and {more} more" if more else "")


def comparison_words(comparison: Comparison) -> str:
    """A window for people."""

    def number(value: float | None, form: str) -> str:
        return "–" if value is None else format(value, form)

    lines = [
        f"{comparison.source}: a window of {comparison.seconds:.0f} s that ended "
        f"{comparison.age:.0f} s ago, {comparison.known} of {comparison.links} links",
        f"rank correlation of predicted load and counted bytes: {number(comparison.rank, '.3f')}",
        f"of the counted top 1 %, predicted in the top 5 %: {number(comparison.top, '.0%')}",
        f"counted: mean {comparison.counted_mean:.1%} of a link's speed, most "
        f"{comparison.counted_max:.1%}; links carried {comparison.scale:.1%} of the predicted load",
    ]
    lines += [f"left out: {note}" for note in comparison.notes]
    if comparison.hot_links:
        lines.append(f"hot but not predicted: {comparison.hot_links} links")
        lines += [
            f"  {link.link}: counted {link.counted:.1%}, explained by jobs {link.explained:.1%}"
            for link in comparison.hot
        ]
    else:
        lines.append("hot but not predicted: none")
    if comparison.jobs:
        lines.append(f"{'job':>12}  {'links':>6} {'predicted':>9} {'counted':>8} {'hottest':>8} "
                     f"{'waits':>6} {'weight':>7}  worst link")  # fmt: skip
    lines += [
        f"{job.job:>12}  {job.links:6} {job.predicted:9.2f} {number(job.counted, '.1%'):>8} "
        f"{number(job.hottest, '.1%'):>8} {number(job.waits_share, '.0%'):>6} "
        f"{number(job.weight, '.3f'):>7}  {job.worst_link}"
        for job in comparison.jobs
    ]
    return "\n".join(lines)
