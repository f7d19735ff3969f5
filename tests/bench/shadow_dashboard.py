"""The dashboard of a shadow week, drawn without Grafana, which no Debian package has.

The agent's metrics of the week are loaded into a real Prometheus, which answers the queries of
deploy/grafana/sar-agent.json. Titles, order, legends and units are the file's; the look is not.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from sar_lab.live.process import require
from sar_lab.live.prometheus import Prometheus

BOARD = Path(__file__).parents[2] / "deploy/grafana/sar-agent.json"
LABELS = 'instance="shadow",job="sar-agent"'
STEPS, WIDTH, HEIGHT, PLOT = 240, 300, 110, 96
COLOURS = ("#3274d9", "#e0752d", "#299c46", "#a352cc", "#d44a3a", "#0a9396", "#8f3bb8", "#6b6b6b")
STYLE = """body{font:14px sans-serif;margin:1rem;background:#f4f5f5;color:#24292e}
main{display:grid;grid-template-columns:repeat(24,1fr);gap:8px}
section{background:#fff;border:1px solid #dcdfe3;border-radius:3px;padding:8px;min-width:0}
h2{grid-column:1/-1;font-size:15px;margin:.6rem 0 0}h3{font-size:13px;margin:0 0 4px}
b{font-size:1.9rem;font-weight:500}small{display:block;overflow-wrap:anywhere}svg{width:100%}
@media(max-width:700px){section{grid-column:1/-1!important}}"""


class WeekOfMetrics:
    """Scrapes with times of their own, for Prometheus's import."""

    def __init__(self, registry: CollectorRegistry, folder: Path) -> None:
        self.registry = registry
        self._file = (folder / "week-of-metrics").open("w")  # a list would be the agent's memory
        text = BOARD.read_text()
        self._wanted = set(re.findall(r"\b(?:sar_agent|process)_\w+", text))

    def scrape(self, now: float) -> None:
        """Note the values that the dashboard asks for."""
        for line in generate_latest(self.registry).decode().splitlines():
            found = re.match(r"(\w+)(?:\{(.*)\})? (\S+)$", line)
            if found and found[1] in self._wanted:
                labels = ",".join(filter(None, (found[2], LABELS)))
                self._file.write(f"{found[1]}{{{labels}}} {found[3]} {now:.3f}\n")

    def draw(self, begin: float, end: float, path: Path) -> None:
        """Write the dashboard from `begin` to `end` (Unix seconds) as one HTML page."""
        require("prometheus", "prometheus")
        with tempfile.TemporaryDirectory(prefix="sar-week-") as name:
            text, stored = Path(self._file.name), Path(name) / "stored"
            self._file.write("# EOF\n")
            self._file.close()
            load = ["promtool", "tsdb", "create-blocks-from"]
            load += ["--max-block-duration=2400h", "openmetrics"]  # one: it reads all for each
            subprocess.run([*load, str(text), str(stored)], check=True, capture_output=True)
            text.unlink()
            with Prometheus([], stored=stored) as prometheus:
                body = "".join(_sections(prometheus, begin, end))
        view = '<meta name="viewport" content="width=device-width">'
        head = f'<!doctype html><meta charset="utf-8">{view}'
        path.write_text(
            f"{head}<title>Dashboard</title><style>{STYLE}</style><main>{body}</main>\n"
        )


def _sections(prometheus: Prometheus, begin: float, end: float) -> Iterator[str]:
    board = json.loads(BOARD.read_text())["panels"]
    for panel in (one for row in board for one in (row, *row.get("panels", ()))):
        title = escape(panel["title"])
        if panel["type"] == "row":
            yield f"<h2>{title}</h2>"
            continue
        unit = panel["fieldConfig"]["defaults"].get("unit", "none")
        found = []
        for target in panel["targets"]:
            asked = target["expr"].replace("$instance", "shadow")
            stat = panel["type"] == "stat"
            step = 60.0 if stat else (end - begin) / STEPS
            span = {"start": str(end if stat else begin), "end": str(end), "step": str(step)}
            for row in prometheus.get("query_range", query=asked, **span)["result"]:
                found.append(
                    (_legend(target.get("legendFormat", ""), row["metric"]), row["values"])
                )
        inner = (
            _stat(found, panel, unit)
            if panel["type"] == "stat"
            else _lines(found, unit, begin, end)
        )
        yield (
            f'<section style="grid-column:span {panel["gridPos"]["w"]}"><h3>{title}</h3>'
            f"{inner if found else 'No data'}</section>"
        )


def _legend(form: str, labels: dict[str, str]) -> str:
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda m: labels.get(m[1], ""), form)


def _stat(found: list[tuple[str, Any]], panel: dict[str, Any], unit: str) -> str:
    names: dict[str, str] = {}
    for mapping in panel["fieldConfig"]["defaults"].get("mappings", ()):
        names |= {key: value.get("text", key) for key, value in mapping["options"].items()}
    texts = []
    for legend, values in found:
        number = values[-1][1]
        named = panel["options"].get("textMode") == "name"
        texts.append(
            legend if named else f"{legend} {names.get(number, _number(float(number), unit))}"
        )
    return f"<b>{escape(', '.join(t.strip() for t in texts))}</b>"


def _lines(found: list[tuple[str, Any]], unit: str, begin: float, end: float) -> str:
    all_values = [float(v) for _, values in found for _, v in values if math.isfinite(float(v))]
    most = max([*all_values, 0.0])
    top = most or 1.0
    parts = [f'<text x="2" y="10" font-size="9">{escape(_number(most, unit))}</text>']
    legends = []
    for i, (legend, values) in enumerate(found):
        points = " ".join(
            f"{(t - begin) / (end - begin) * WIDTH:.1f},{HEIGHT - float(v) / top * PLOT:.1f}"
            for t, v in values
            if math.isfinite(float(v))
        )
        colour = COLOURS[i % len(COLOURS)]
        parts.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="1.2" points="{points}"/>'
        )
        legends.append(f'<span style="color:{colour}">▬</span> {escape(legend)}')
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT + 2}">{"".join(parts)}</svg>'
        f"<small>{' '.join(legends)}</small>"
    )


def _number(value: float, unit: str) -> str:
    if unit == "percentunit":
        return f"{value:.1%}"
    if unit == "bytes":
        return f"{value / 2**20:.0f} MiB"
    return f"{value:.3g}" + (" s" if unit == "s" else "")
