"""The page of a trial: one self-contained HTML file, all of whose numbers come from this trial."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, FileSystemLoader
from markupsafe import Markup, escape

from sar_lab.page_templates import templates
from sar_lab.trial.results import Table, headline
from sar_lab.trial.site_look import SiteLook
from sar_lab.trial.trial_run import TrialResult

AIM = "sar-plus"
WIDTH, LINE = 560, 30


def write_page(
    look: SiteLook, result: TrialResult, tables: list[Table], runs: str, sent: list[str], path: Path
) -> None:
    """`runs`: what the commands were; `sent`: the lines on the anonymised folder."""
    usual = templates()
    assert usual.loader
    here = FileSystemLoader(Path(__file__).parent)
    page = usual.overlay(loader=ChoiceLoader([usual.loader, here]), finalize=with_code)
    text = page.get_template("trial.html").render(
        look=look,
        result=result,
        tables=[(table, Markup(strips(table))) for table in tables],
        width=WIDTH,
        line=LINE,
        number=number_text,
        headline=headline(tables, AIM if AIM in look.tables else list(look.tables)[-1]),
        runs=escape(runs),
        sent=sent,
    )
    path.write_text(text)


def with_code(value: Any) -> Any:
    """A sentence of the program, whose words between backquotes are code on the page.

    >>> print(with_code("a < b until `sar-agent resume`"))
    a &lt; b until <code>sar-agent resume</code>
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(value))))


def number_text(value: float) -> str:
    """Four digits, and never an exponent.

    >>> number_text(371512.3), number_text(1.23456)
    ('371,512', '1.235')
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def strips(table: Table) -> str:
    """The inside of an SVG: a line for each set of tables, a circle for each run, a bar for the
    median."""
    values = [value for row in table.rows for value in row.values]
    low, high = min(values), max(values)
    wide = (high - low) or 1.0

    def x(value: float) -> float:
        return 90 + (value - low) / wide * (WIDTH - 110)

    parts = []
    for number, row in enumerate(table.rows):
        y = number * LINE + 16
        parts.append(f'<text x="0" y="{y + 5}">{row.tables}</text>')
        parts.append(f'<path class="grid" d="M90 {y}H{WIDTH - 20}"/>')
        kind = "before" if number == 0 else "after"
        parts += [
            f'<circle class="{kind}" cx="{x(v):.1f}" cy="{y}" r="5" fill-opacity=".55"/>'
            for v in row.values
        ]
        if row.timed:
            parts.append(
                f'<path class="stem" d="M{x(row.timed.median):.1f} {y - 12}v24" stroke-width="3"/>'
            )
    y = len(table.rows) * LINE + 16
    for at, anchor, value in ((90, "start", low), (WIDTH - 20, "end", high)):
        place = f'class="small" x="{at}" y="{y}" text-anchor="{anchor}"'
        parts.append(f"<text {place}>{number_text(value)} {table.unit}</text>")
    return "".join(parts)
