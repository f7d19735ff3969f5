"""pFTree, Figs. 5 and 6: three partitions over two roots, and what isolating one of them does."""

from __future__ import annotations

from collections.abc import Sequence

from sar_lab.research.papers.claims import value
from sar_lab.research.papers.outcome import Outcome, ResultTable
from sar_lab.research.papers.pftree_examples import (
    Example,
    LinkHosts,
    described,
    draw_all,
    hosts_by_link,
)
from sar_lab.research.papers.pictures import LABELS
from sar_lab.research.papers.published import quotes

SAID = quotes("pftree-fig5")
EXAMPLE = Example(("ABC", "DEF", "GHI"), 2, {"1": "AE", "2": "BFI", "3": "CDGH"})
SHARED = {("R1", "L1"): {"1": "A", "3": "C"}, ("R2", "L2"): {"1": "E", "2": "F"}}
CASES = ("pftree-printed", "pftree", "pftree-ext")


def links_of(engine: str) -> LinkHosts:
    """The links of an engine; under -ext partition 1 has the policy `phy`."""
    example = EXAMPLE.with_isolated("1") if engine == "pftree-ext" else EXAMPLE
    return hosts_by_link(example, example.routed(engine))


def partners(links: LinkHosts, partition: str) -> set[str]:
    """The partitions with which one shares a link, in either direction."""
    return {
        other
        for used in links.values()
        if partition in used
        for other in used
        if other != partition
    }


def pftree_fig5(seeds: Sequence[int]) -> Outcome:
    """Routes the example without and with isolation."""
    links = {engine: links_of(engine) for engine in CASES}
    claims = []
    for engine in ("pftree-printed", "pftree"):
        met = sum(
            {n: "".join(sorted(h)) for n, h in links[engine].get(link, {}).items()} == hosts
            for link, hosts in SHARED.items()
        )
        claims += [
            value(
                f"{LABELS[engine]}: links to A and to E with the printed partner",
                2,
                met,
                said=SAID["shared"],
            ),
            value(
                f"{LABELS[engine]}: partitions that share links with partition 1",
                2,
                len(partners(links[engine], "1")),
                said=SAID["shared"],
            ),
        ]
    ext = links["pftree-ext"]
    claims += [
        value(
            "pFTree-Ext: partitions that share links with partition 1",
            0,
            len(partners(ext, "1")),
            said=SAID["isolated"],
        ),
        value(
            "pFTree-Ext: links from R2 to L1 and L2 that partitions 2 and 3 share",
            2,
            sum(set(ext.get(("R2", leaf), {})) == {"2", "3"} for leaf in ("L1", "L2")),
            said=SAID["others"],
        ),
    ]
    rows = [[LABELS[e], *described(links[e], ["L1", "L2", "L3"])] for e in CASES]
    return Outcome(
        claims,
        tables=[ResultTable(["down", "to L1", "to L2", "to L3"], rows)],
        draw=lambda figure: draw_all(figure, EXAMPLE, {LABELS[e]: links[e] for e in CASES}),
    )
