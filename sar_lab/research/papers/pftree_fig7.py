"""pFTree, Fig. 7: what a victim's flow keeps while flows of another partition come and go."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sar_agent.routing.routes import Routes
from sar_lab.fluid.flow_events import end_times
from sar_lab.fluid.flow_paths import routed_links
from sar_lab.fluid.flow_steps import flows_of_steps
from sar_lab.research.packets import packet_times
from sar_lab.research.papers.claims import NEAR, Claim, value
from sar_lab.research.papers.compared import claim, falls
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pftree_worked import THREE
from sar_lab.research.papers.pictures import LABELS
from sar_lab.research.papers.published import quotes

SAID = quotes("pftree-fig7")
VICTIM, FIRST, SECOND = "AE", "BF", "IF"
TIMES = ((0, 20, (VICTIM,)), (20, 40, (VICTIM, FIRST)), (40, 60, (VICTIM, FIRST, SECOND)),
         (60, 80, (VICTIM, SECOND)), (80, 100, (VICTIM,)))  # fmt: skip
"""Seconds, and the flows that run then. The text does not say which flow stops first."""
STEPS = ((VICTIM, FIRST), (VICTIM, FIRST, SECOND))
MEASURED = (*SAID["first"].numbers[:2], SAID["second"].number)
ENGINES = ("pftree", "pftree-ext")
VICTIM_GBIT, OTHERS_GBIT = 0.01, 0.2
"""The others send until the victim's message has arrived."""


def victims_share(routes: Routes, flows: Sequence[str], *, packets: bool = False) -> float:
    """The victim's bandwidth as a share of what it has alone; the first flow is the victim's."""
    times = [_victims_time(routes, some, packets) for some in ((flows[0],), flows)]
    return times[0] / times[1]


def _victims_time(routes: Routes, flows: Sequence[str], packets: bool) -> float:
    fabric = THREE.fabric
    ends = np.array([THREE.terminals(each) for each in flows])
    size = np.full(len(flows), OTHERS_GBIT)
    size[0] = VICTIM_GBIT
    made = flows_of_steps([ends], size)
    links = routed_links(fabric, routes, made)
    found = packet_times(fabric, links, made).end if packets else end_times(links, made)
    return float(found[0])


def pftree_fig7(seeds: Sequence[int]) -> Outcome:
    """The flows of the figure under both engines, as a fluid and as packets."""
    tables = {
        e: (THREE.with_isolated("1") if e == "pftree-ext" else THREE).routed(e) for e in ENGINES
    }
    fluid = {e: [1.0, *(victims_share(tables[e], flows) for flows in STEPS)] for e in ENGINES}
    packets = {
        e: [1.0, *(victims_share(tables[e], flows, packets=True) for flows in STEPS)]
        for e in ENGINES
    }
    lines = {e: [victims_share(tables[e], flows) for _, _, flows in TIMES] for e in ENGINES}
    measured = [each / MEASURED[0] for each in MEASURED]
    rows = [
        [name, *(f"{each:.2f}" for each in shares)]
        for name, shares in (
            ("pFTree, measured by the paper", measured),
            *((f"{LABELS[e]}, fluid", fluid[e]) for e in ENGINES),
            *((f"{LABELS[e]}, packets", packets[e]) for e in ENGINES),
        )
    ]
    return Outcome(
        [*_claims("fluid", fluid), *_claims("packets", packets)],
        tables=[ResultTable(["the victim's share", "alone", "and B to F", "and I to F"], rows)],
        draw=lambda figure: _draw(figure, lines),
    )


def _claims(model: str, shares: dict[str, list[float]]) -> list[Claim]:
    plain, ext = shares["pftree"], shares["pftree-ext"]
    return [
        value(f"{model}, pFTree: the victim's share beside B to F", MEASURED[1] / MEASURED[0],
              plain[1], NEAR, said=SAID["first"]),
        value(f"{model}, pFTree: the victim's share beside both", MEASURED[2] / MEASURED[0],
              plain[2], NEAR, said=SAID["second"]),
        value(f"{model}, pFTree-Ext: the victim's share beside both", 1.0, ext[2],
              said=SAID["constant"]),
        claim(falls([plain]), f"{model}, pFTree: the victim's share falls with each flow",
              said=SAID["second"], ours=", ".join(f"{each:.2f}" for each in plain)),
    ]  # fmt: skip


def _draw(figure: Figure, lines: dict[str, list[float]]) -> None:
    axes = figure.subplots()
    at = [begin for begin, _, _ in TIMES] + [TIMES[-1][1]]
    for engine, colour in zip(ENGINES, ("#ee6677", "#4477aa"), strict=True):
        axes.stairs(lines[engine], at, baseline=None, color=colour, lw=2,
                    label=f"{LABELS[engine]}, ours (fluid)")  # fmt: skip
    shares = [each / MEASURED[0] for each in MEASURED]
    axes.plot([10, 30, 50], shares, "D", mfc="none", color="#ee6677", label="pFTree, published")
    axes.plot([10, 30, 50], [1.0] * 3, "s", mfc="none", color="#4477aa", ms=9,
              label="pFTree-Ext, published")  # fmt: skip
    axes.set(xlabel="seconds", ylabel="bandwidth of A to E (alone: 1)", ylim=(0, 1.15))
    for second, text in ((20, "B to F\nstarts"), (40, "I to F\nstarts"), (60, "stops"),
                         (80, "stops")):  # fmt: skip
        axes.axvline(second, color="#888888", lw=0.8, ls=":")
        axes.text(second + 0.5, 0.02, text, fontsize=7, color="#666666")
    figure.legend(loc="outside upper center", ncols=2, fontsize="small")
