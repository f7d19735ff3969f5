"""Routing Keys, Fig. 2: two applications on 16 hosts, routed three ways.

Application A has hosts 0, 1, 4 and 8 and sends 0 → 4 and 1 → 8, B has 2 and 12 and sends 2 → 12.
Switches 4 … 7 of the figure are the middle switches. The claims count the flows on the link between
leaf switch 0 and switch 4, and the most flows on any link.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32
from sar_agent.fabric.spec import load_fabric
from sar_agent.routing.dmodk import modulo_labels
from sar_agent.routing.keys import key_tree, unshifted
from sar_agent.routing.keys.key import digit_channels
from sar_lab.research.papers.claims import Claim, value
from sar_lab.research.papers.outcome import Figure, Outcome
from sar_lab.research.papers.pictures import LABELS
from sar_lab.research.papers.published import quotes
from sar_lab.research.trace.phase_keys import KINDS

SAID = quotes("routing-keys-fig2")
FLOWS = {"A": ([0, 1], [4, 8]), "B": ([2], [12])}
TITLES = {"dmodk": "(a) D-mod-k", "ark": "(b) ARK", "nrk": "(c) NRK"}
PRINTED = ("nrk-printed", "nrk-printed-links")
TITLES |= {nrk: LABELS[nrk] for nrk in PRINTED}
TINT = {"A": "#4477aa", "B": "#ee6677"}


def routing_keys_fig2(seeds: Sequence[int]) -> Outcome:
    """Runs the printed example; nothing is random."""
    fabric = load_fabric("xgft:2;4,4;1,4")
    ways = routed(fabric)
    printed = {TITLES[nrk]: _claims(fabric, ways, nrk) for nrk in PRINTED}
    return Outcome(
        _claims(fabric, ways, "nrk"),
        as_printed=printed,
        draw=lambda figure: _draw(figure, fabric, ways),
    )


def _claims(fabric: Fabric, ways: dict[str, dict[str, I32]], nrk: str) -> list[Claim]:
    leftmost = int(fabric.channel_by_port[0, 5])
    claims = []
    for engine, quote in (("dmodk", "three"), ("ark", "two"), (nrk, "one")):
        used = np.concatenate(list(ways[engine].values())).ravel()
        count = np.bincount(used, minlength=fabric.channels)
        name = TITLES[engine]
        claims += [
            value(f"{name}: flows on the leftmost link", SAID[quote], float(count[leftmost])),
            value(f"{name}: most flows on a link", SAID[quote], float(count.max())),
        ]
    return claims


def routed(fabric: Fabric) -> dict[str, dict[str, I32]]:
    """Engine → application → int32[flows, 2]: the channels up and down."""
    tree = key_tree(fabric)
    assert tree.view is not None
    results: dict[str, dict[str, I32]] = {engine: {} for engine in ("dmodk", *KINDS)}
    load = {engine: np.zeros(fabric.channels, np.int64) for engine in KINDS}
    for name in ("B", "A"):
        source, target = (np.array(end, np.int32) for end in FLOWS[name])
        labels = modulo_labels(tree.view)[target]
        results["dmodk"][name] = digit_channels(tree, source, target, labels)
        for engine, (make, shift) in KINDS.items():
            key = make(tree, (source, target))
            found = shift(key, load[engine]) if shift else unshifted(key)
            results[engine][name] = found.channels
            load[engine] += found.own
    return results


def _draw(figure: Figure, fabric: Fabric, ways: dict[str, dict[str, I32]]) -> None:
    for axes, (engine, of) in zip(figure.subplots(1, 3), ways.items(), strict=False):
        place = {s: (s % 4, s // 4) for s in range(fabric.switches)}
        for c in range(fabric.channels):
            (x, y), (u, v) = (
                place[int(e[c])] for e in (fabric.channel_source, fabric.channel_target)
            )
            axes.plot([x, u], [y, v], color="#e3e3e3", lw=1, zorder=0)
        seen: dict[int, int] = {}
        for name, flows in of.items():
            for way in flows.tolist():
                for c in way:
                    aside = 0.06 * seen.setdefault(c, 0)
                    seen[c] += 1
                    ends = fabric.channel_source[c], fabric.channel_target[c]
                    (x, y), (u, v) = (place[int(end)] for end in ends)
                    axes.plot([x + aside, u + aside], [y, v], color=TINT[name], lw=2,
                              ls="-" if name == "A" else "--")  # fmt: skip
        for s, (x, y) in place.items():
            axes.text(x, y, str(s), ha="center", va="center", fontsize=9,
                      bbox={"boxstyle": "square", "fc": "white", "ec": "#666666"})  # fmt: skip
        axes.set(title=TITLES[engine], xticks=[], yticks=[], ylim=(-0.3, 1.3))
        axes.spines[["left", "bottom"]].set_visible(False)
