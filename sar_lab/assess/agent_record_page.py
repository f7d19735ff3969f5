"""The page on what an agent has recorded: one HTML file, in the style of the report of dumps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from sar_lab.assess.agent_record import AgentRecord
from sar_lab.assess.charts import WIDTH, svg, text, ticks
from sar_lab.assess.judgement import Change
from sar_lab.page_templates import templates, write_page

LEFT, TALL = 40.0, 130.0


def write_record(record: AgentRecord, command: str, folder: Path) -> Path:
    """Writes `index.html` and `assess.json` to `folder` (created if needed); returns the page's
    path."""
    return write_page(folder, "assess.json", record.json(), render(record, command))


def render(record: AgentRecord, command: str) -> str:
    """The page as HTML."""
    total, days = record.total, [day.name for day in record.days]
    titles = ("All messages at once", "One message at a time")
    what = (
        "An all-to-all whose messages are posted together, in all jobs",
        "A pairwise all-to-all, phase after phase, in all jobs",
    )
    each = ([day.at_once for day in record.days], [day.one_at_a_time for day in record.days])
    changes = (total.at_once, total.one_at_a_time)
    return (
        templates()
        .get_template("agent_record.html")
        .render(
            record=record,
            command=command,
            period=days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}",
            tiles=list(zip(titles, what, changes, record.better, record.worse, strict=True)),
            charts=[
                Markup(_day_chart(title, days, of_days))
                for title, of_days in zip(titles, each, strict=True)
            ],
        )
    )


def _day_chart(title: str, days: Sequence[str], changes: Sequence[Change]) -> str:
    """Two bars for each day, the mean times before and after; 1 is no waiting."""
    top = 1.05 * max(max(change.before, change.after) for change in changes)
    base, right = 30 + TALL, WIDTH - 6
    parts = [text(4, 16, f"{title} (1 = no waiting)", style="strong")]
    for tick in ticks(top, 3):
        y = base - tick / top * TALL
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>')
        parts.append(text(LEFT - 6, y + 4, f"{tick:g}", "end", "small"))
    step = (right - LEFT) / len(days)
    wide = min(22.0, 0.38 * step)
    for i, (day, change) in enumerate(zip(days, changes, strict=True)):
        middle = LEFT + (i + 0.5) * step
        for value, style, x in (
            (change.before, "before", middle - wide),
            (change.after, "after", middle),
        ):
            tall = value / top * TALL
            parts.append(
                f'<rect class="{style}" x="{x:.1f}" y="{base - tall:.1f}" width="{wide:.1f}" '
                f'height="{tall:.1f}"/>'
            )
        if i % -(-len(days) // 8) == 0:
            parts.append(text(middle, base + 16, day[5:], "middle", "small"))
    return svg(base + 24, f"{title}: mean times before and after, by day", parts)
