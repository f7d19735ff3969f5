"""Several assessments on one page, side by side: the head of each, and a link to the whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sar_lab.assess.assess_page import TIMED, collectives_chart, write_assessment
from sar_lab.assess.assessment import Assessment
from sar_lab.assess.tiles import rings_of, tiles_of
from sar_lab.page_templates import templates, write_page


def alone(chart: str) -> str:
    """The picture as a file of its own, with the colours of the page."""
    environment = templates()
    style = "".join(environment.get_template(name).render() for name in ("style.css", "page.css"))
    inside, _, more = chart.removeprefix("<svg ").partition(">")
    name = "http://www.w3.org/2000/svg"
    return f'<svg xmlns="{name}" {inside}><style>{style}</style>{more}\n'


def write_side_by_side(found: Mapping[str, Assessment], folder: Path) -> Path:
    """Writes the page of each to a folder of its name, and `index.html` and `assess.json` of all;
    returns the path of the page. The keys are words such as `scattered`, for people and paths."""
    for name, each in found.items():
        write_assessment(each, folder / name)
        if chart := collectives_chart(each):
            (folder / name / "collectives.svg").write_text(alone(chart))
    html = (
        templates()
        .get_template("side_by_side.html")
        .render(
            fabric=next(iter(found.values())).given.fabric,
            columns=[
                {
                    "name": name,
                    "found": each,
                    "tiles": tiles_of(each),
                    "rings": rings_of(each),
                    "chart": collectives_chart(each),
                }
                for name, each in found.items()
            ],
            timed=TIMED,
        )
    )
    return write_page(folder, "assess.json", {n: a.json() for n, a in found.items()}, html)
