"""What to repair before anybody thinks of routes, and what the repair alone would bring."""

from __future__ import annotations

from sar_agent.fabric.odd_cables import odd_cables
from sar_agent.quality import measure
from sar_agent.reports.cables import not_ignored
from sar_agent.reports.places import NOWHERE, Places
from sar_lab.assess.rate import RatedRoutes
from sar_lab.assess.site_data import SiteData

SHOWN = 3


def repair_first(given: SiteData, before: RatedRoutes, ignored: Places = NOWHERE) -> str:
    """Names the cables that are slower than their like, and what is missing, but what is `ignored`;
    empty if nothing is. The same routes are measured with all slow cables repaired."""
    odd = odd_cables(given.fabric)
    sentences = [each.sentence for each in not_ignored(given.fabric, odd.odd, ignored)]
    if not sentences:
        return ""
    more = len(sentences) - SHOWN
    told = "; ".join(sentences[:SHOWN]) + (f"; and {more} more" if more > 0 else "")
    sentence = f"{'Repair' if odd.slow else 'Look at'} these first: {told}."
    if not (odd.slow and given.mix.jobs):
        return sentence
    now = before.measures.load_max
    then = measure(odd.repaired, given.mix, before.routes).load_max
    if then < now:
        these = "this cable as fast as its" if odd.slow == 1 else "these cables as fast as their"
        sentence += (
            f" With {these} like, the fullest link would carry {then:.2f} instead of {now:.2f} "
            "times its capacity, by the same routes."
        )
    return sentence
