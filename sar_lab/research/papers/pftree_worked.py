"""pFTree, Figs. 3 to 6 and 12: the worked examples, and the trees of Table 3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sar_agent.fabric.xgft_view import recognise_xgft
from sar_lab.research.papers.claims import Claim, value
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pftree_examples import (
    Example,
    LinkHosts,
    described,
    down_to,
    draw_all,
    draw_links,
    hosts_by_link,
    shared_down,
)
from sar_lab.research.papers.pftree_trees import TREES, draw_victims
from sar_lab.research.papers.pictures import LABELS
from sar_lab.research.papers.published import quotes

TWO = Example(("abcd", "efgh"), 2, {"1": "adgh", "2": "bcef"})
PLAIN = ("pftree-printed", "pftree")
PLACES = {("R1", "L1"): "ad", ("R2", "L1"): "bc", ("R1", "L2"): "gh", ("R2", "L2"): "ef"}


UNUSED = Example(("ABC", "DEF"), 2, {"1": "BC", "2": "ACDF", "3": "DE"})
MIXED = Example(("ABCD", "EFGH"), 2, {"1": "ABEF", "2": "CDGH"})
OBLIVIOUS = "ftree"
CROWDED = {("R1", "L1"): "AC", ("R2", "L1"): "", ("R1", "L2"): "DF", ("R2", "L2"): ""}


def pftree_fig3(seeds: Sequence[int]) -> Outcome:
    """What routes that see no partitions do: (a) links without a use beside two that carry double,
    (b) two partitions on each link."""
    said, claims = quotes("pftree-fig3"), []
    engines = (OBLIVIOUS, *PLAIN)
    unused = {name: hosts_by_link(UNUSED, UNUSED.routed(name)) for name in engines}
    mixed = {name: hosts_by_link(MIXED, MIXED.routed(name)) for name in engines}
    for link, hosts in CROWDED.items():
        right = float(down_to(unused[OBLIVIOUS], *link) == hosts)
        words = f"only {' and '.join(hosts)}" if hosts else "no host"
        name = "crowded" if hosts else "unused"
        claims.append(value(f"(a) fat-tree: {words} down {' → '.join(link)}", 1, right,
                            said=said[name]))  # fmt: skip
    both = {name: len(shared_down(each)) for name, each in mixed.items()}
    claims.append(
        value("(b) fat-tree: links down of both partitions", 4, both[OBLIVIOUS], said=said["mixed"])
    )
    for engine in PLAIN:
        most = max(len(down_to(mixed[engine], *link)) for link in CROWDED)
        claims += [
            value(f"(b) {LABELS[engine]}: links down of both partitions", 0, both[engine],
                  said=said["isolated"]),
            value(f"(b) {LABELS[engine]}: most hosts on a link (max)", 2, most,
                  said=said["isolated"]),
        ]  # fmt: skip

    def draw(figure: Figure) -> None:
        places = figure.subplots(1, 3)
        for axes, example, links, title in (
            (places[0], UNUSED, unused[OBLIVIOUS], "(a) fat-tree"),
            (places[1], MIXED, mixed[OBLIVIOUS], "(b) fat-tree"),
            (places[2], MIXED, mixed["pftree"], "(b) pFTree"),
        ):
            draw_links(axes, example, links, title)

    return Outcome(claims, [_down(UNUSED, unused), _down(MIXED, mixed)], draw)


def pftree_fig4(seeds: Sequence[int]) -> Outcome:
    """Two partitions of eight hosts under two leaf switches, routed with the printed algorithms and
    with our engine."""
    said = quotes("pftree-fig4")
    links = {name: hosts_by_link(TWO, TWO.routed(name)) for name in PLAIN}
    claims: list[Claim] = []
    for engine, each in links.items():
        right = sum(down_to(each, *link) == hosts for link, hosts in PLACES.items())
        most = max(len(down_to(each, root, leaf)) for root, leaf in PLACES)
        name, both = LABELS[engine], len(shared_down(each))
        claims += [
            value(f"{name}: links with the printed hosts", len(PLACES), right, said=said["places"]),
            value(f"{name}: most hosts on a link (max)", 2, most, said=said["balanced"]),
            value(f"{name}: links of both partitions", 0, both, said=said["isolated"]),
        ]
    titles = {f"{LABELS[n]}: hosts reached down each link": each for n, each in links.items()}
    return Outcome(claims, [_down(TWO, links)], lambda figure: draw_all(figure, TWO, titles))


HEAVY = replace(TWO, weights={h: 100.0 if h == "a" else 1.0 for h in "abcdefgh"})
HEAVY_PLACES = {**PLACES, ("R1", "L1"): "a", ("R2", "L1"): "bcd"}


def pftree_fig12(seeds: Sequence[int]) -> Outcome:
    """The tree of Fig. 4 with one heavy host."""
    said, engine = quotes("pftree-fig12"), "pftree-wt"
    links = hosts_by_link(HEAVY, HEAVY.routed(engine))
    claims = [
        value(f"hosts {' '.join(hosts)} descend from {root}, and no other of {leaf}", 1,
              float(down_to(links, root, leaf) == hosts),
              said=said["heavy" if leaf == "L1" else "second"])
        for (root, leaf), hosts in HEAVY_PLACES.items()
    ]  # fmt: skip
    both = len(shared_down(links))
    claims.append(value("links down with hosts of both partitions", 1, both, said=said["one"]))
    title = f"{LABELS[engine]}, a weighs 100"
    return Outcome(
        claims,
        [_down(HEAVY, {engine: links})],
        lambda figure: draw_links(figure.subplots(), HEAVY, links, title),
    )


THREE = Example(("ABC", "DEF", "GHI"), 2, {"1": "AE", "2": "BFI", "3": "CDGH"})
SHARED = {("R1", "L1"): {"1": "A", "3": "C"}, ("R2", "L2"): {"1": "E", "2": "F"}}


def pftree_fig5(seeds: Sequence[int]) -> Outcome:
    """Three partitions over two roots, and what isolating the first of them does."""
    said, alone = quotes("pftree-fig5"), THREE.with_isolated("1")
    links = {name: hosts_by_link(THREE, THREE.routed(name)) for name in PLAIN}
    ext = hosts_by_link(alone, alone.routed("pftree-ext"))
    claims: list[Claim] = []
    for engine, each in links.items():
        met = sum(
            {n: "".join(sorted(h)) for n, h in each.get(link, {}).items()} == hosts
            for link, hosts in SHARED.items()
        )
        claims += [
            value(f"{LABELS[engine]}: links to A and to E with the printed partner", 2, met,
                  said=said["shared"]),
            value(f"{LABELS[engine]}: partitions that share links with partition 1", 2,
                  len(_partners(each, "1")), said=said["shared"]),
        ]  # fmt: skip
    shared = sum(set(ext.get(("R2", leaf), {})) == {"2", "3"} for leaf in ("L1", "L2"))
    claims += [
        value("pFTree-Ext: partitions that share links with partition 1", 0,
              len(_partners(ext, "1")), said=said["isolated"]),
        value("pFTree-Ext: links from R2 to L1 and L2 that partitions 2 and 3 share", 2, shared,
              said=said["others"]),
    ]  # fmt: skip
    links["pftree-ext"] = ext
    titles = {LABELS[name]: each for name, each in links.items()}
    return Outcome(claims, [_down(THREE, links)], lambda figure: draw_all(figure, THREE, titles))


def _partners(links: LinkHosts, partition: str) -> set[str]:
    """The partitions with which one shares a link, in either direction."""
    met = {other for used in links.values() if partition in used for other in used}
    return met - {partition}


def _down(example: Example, links: dict[str, LinkHosts]) -> ResultTable:
    """What each engine carries down to each leaf switch."""
    leaves = [f"L{n}" for n in range(1, len(example.leaves) + 1)]
    rows = [[LABELS[name], *described(each, leaves)] for name, each in links.items()]
    return ResultTable(["down", *(f"to {leaf}" for leaf in leaves)], rows)


def pftree_table3(seeds: Sequence[int]) -> Outcome:
    """The trees of all simulations: nodes, victims and links are counted in the fabrics, not in
    their specs."""
    rows = []
    for tree in TREES:
        draw = draw_victims(tree, 0)
        fabric, view = draw.fabric, recognise_xgft(draw.fabric)
        per_leaf = np.unique(fabric.terminal_switch[draw.victims], return_counts=True)[1]
        ways_up = np.bincount(fabric.channel_source)[fabric.leaves]
        over = float((fabric.terminals_at[fabric.leaves] / ways_up).max())
        ours = (fabric.terminals, len(draw.victims), over)
        if ours != (tree.nodes, tree.victims, tree.oversubscription):
            raise ValueError(f"the tree of {tree.nodes} nodes is not that of Table 3: {ours}")
        spec = f"XGFT(2;{view.m[0]},{view.m[1]};1,{view.w[1]})"
        under = f"{per_leaf.min()} … {per_leaf.max()}"
        rows.append([str(ours[0]), spec, f"{over:g}:1", str(ours[1]), under])
    head = ["nodes", "tree", "oversubscribed", "victims", "under each leaf"]
    return Outcome([], [ResultTable(head, rows)])
