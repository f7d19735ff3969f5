"""pFTree, Fig. 4: two partitions of eight hosts under two leaf switches, routed step by step."""

from __future__ import annotations

from collections.abc import Sequence

from sar_lab.research.papers.claims import Claim, value
from sar_lab.research.papers.outcome import Outcome, ResultTable
from sar_lab.research.papers.pftree_examples import (
    Example,
    LinkHosts,
    described,
    down_to,
    draw_all,
    hosts_by_link,
    shared_down,
)
from sar_lab.research.papers.pictures import LABELS
from sar_lab.research.papers.published import quotes

SAID = quotes("pftree-fig4")
EXAMPLE = Example(("abcd", "efgh"), 2, {"1": "adgh", "2": "bcef"})
ENGINES = ("pftree-printed", "pftree")
PLACES = {("R1", "L1"): "ad", ("R2", "L1"): "bc", ("R1", "L2"): "gh", ("R2", "L2"): "ef"}


def pftree_fig4(seeds: Sequence[int]) -> Outcome:
    """Routes the example with the printed algorithms and with our engine."""
    links = {name: hosts_by_link(EXAMPLE, EXAMPLE.routed(name)) for name in ENGINES}
    claims = [claim for name in ENGINES for claim in _claims(name, links[name])]
    rows = [[LABELS[name], *described(links[name], ["L1", "L2"])] for name in ENGINES]
    return Outcome(
        claims,
        tables=[ResultTable(["down", "to L1", "to L2"], rows)],
        draw=lambda figure: draw_all(
            figure,
            EXAMPLE,
            {f"{LABELS[n]}: hosts reached down each link": links[n] for n in ENGINES},
        ),
    )


def _claims(engine: str, links: LinkHosts) -> list[Claim]:
    name = LABELS[engine]
    right = sum(down_to(links, *link) == hosts for link, hosts in PLACES.items())
    most = max(len(down_to(links, root, leaf)) for root, leaf in PLACES)
    return [
        value(f"{name}: links with the printed hosts", len(PLACES), right, said=SAID["places"]),
        value(f"{name}: most hosts on a link (max)", 2, most, said=SAID["balanced"]),
        value(f"{name}: links of both partitions", 0, len(shared_down(links)),
              said=SAID["isolated"]),
    ]  # fmt: skip
