"""Fig. 7 of sar-2016 for a site's history: four measures, two times, and the number of jobs."""

from __future__ import annotations

from sar_lab.assess.charts import WIDTH, svg, text, ticks
from sar_lab.assess.over_time import RatingsOverTime

PANELS = (
    ("efi_max", "Hottest link (routes)", ".0f"),
    ("job_efi_mean", "Hottest link on a job’s routes, mean over jobs (routes)", ".0f"),
    ("dark_fiber", "Dark fiber", ".0%"),
    ("links_mean", "Links that a job can use, mean over jobs (more is better)", ".0f"),
    ("time", "Time for sending, all messages at once, mean over jobs (1 = no waiting)", ".1f"),
    ("phase_time", "Time for sending, one message at a time, mean over jobs", ".1f"),
)
LEFT, TALL = 46.0, 96.0


def timeline(course: RatingsOverTime) -> str:
    """An SVG with one panel below the other, all with the same time axis."""
    first, last = course.times[0], max(course.times[-1], course.times[0] + 1)
    right = WIDTH - 12.0

    def x_of(time: float) -> float:
        return LEFT + (time - first) / (last - first) * (right - LEFT)

    parts, y = [], 0.0
    rows: list[tuple[str, str, list[tuple[list[float], str]]]] = [
        (title, form, [([float(getattr(p, field)) for p in side], style)
                       for side, style in ((course.before, "before"), (course.after, "after"))])
        for field, title, form in PANELS
    ]  # fmt: skip
    rows.append(("Jobs that span switches", ".0f", [([float(n) for n in course.jobs], "other")]))
    for title, form, series in rows:
        top = max(1e-9, *(max(values) for values, _ in series)) * 1.05
        base = y + 26 + TALL
        parts.append(text(4, y + 16, title, style="strong"))
        for tick in ticks(top, 3):
            at = base - tick / top * TALL
            parts.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{right}"/>')
            parts.append(text(LEFT - 6, at + 4, f"{tick:{form}}", "end", "small"))
        for values, style in series:
            points = [
                f"{x_of(t):.1f} {base - v / top * TALL:.1f}"
                for t, v in zip(course.times, values, strict=True)
            ]
            if len(points) == 1:
                points *= 2
            parts.append(f'<path class="line {style}" d="M{"L".join(points)}"/>')
        y = base + 12
    parts.append(text(LEFT, y + 8, course.days[0], "start", "small"))
    parts.append(text(right, y + 8, course.days[1], "end", "small"))
    return svg(y + 14, "Measures over time, before and after", parts)
