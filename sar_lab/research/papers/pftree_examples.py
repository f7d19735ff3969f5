"""The worked examples of pftree-2016: small trees whose hosts and links have letters.

A leaf switch has the hosts of one word, roots are numbered. The links of a root are
counted by the hosts that members of the same partition reach over them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.jobs import JobMix
from sar_agent.jobs.partitions import Partition, Partitions, Policy, make_partitions
from sar_agent.routing.engine import Options, load_engine
from sar_agent.routing.routes import Routes
from sar_lab.research.papers.outcome import Axes, Figure
from sar_lab.research.papers.pftree_printed import PFTreeAsPrinted
from sar_lab.research.papers.pftree_receivers import routes_over

TINTS = {"1": "#228833", "2": "#ee6677", "3": "#aa3377"}
"""Colours of the partitions, near those of the paper."""


@dataclass(frozen=True)
class Example:
    """Leaf switches as words of hosts, partitions as name → hosts."""

    leaves: tuple[str, ...]
    roots: int
    partitions: Mapping[str, str]
    isolated: frozenset[str] = frozenset()
    """The partitions with the policy `phy`."""
    weights: Mapping[str, float] | None = None

    @cached_property
    def fabric(self) -> Fabric:
        """Leaf switches L1 …, roots R1 …; R1 has the highest GUID, which the paper prefers."""
        builder = FabricBuilder("example")
        for n in range(len(self.leaves)):
            builder.add_switch(1 + n, f"L{n + 1}", 36)
        for n in range(self.roots):
            builder.add_switch(100 + self.roots - n, f"R{n + 1}", 36)
        for n, hosts in enumerate(self.leaves):
            for port, host in enumerate(hosts, 1):
                builder.add_terminal(1000 + ord(host), f"{host} HCA-1", host, n, port)
            for root in range(self.roots):
                builder.add_link(n, 20 + root, len(self.leaves) + root, 1 + n)
        return builder.build()

    def terminals(self, hosts: str) -> np.ndarray:
        """int32[hosts], in the order of the letters."""
        return np.array([self.fabric.hosts[host][0] for host in hosts], np.int32)

    def made_partitions(self) -> Partitions:
        """As an engine takes them."""
        parts = [
            Partition(
                name,
                number,
                np.sort(self.terminals(hosts)).astype(np.int32),
                Policy.PHY if name in self.isolated else Policy.DEF,
            )
            for number, (name, hosts) in enumerate(self.partitions.items(), 1)
        ]
        weight = {int(self.fabric.hosts[h][0]): w for h, w in (self.weights or {}).items()}
        return make_partitions(parts, self.fabric, strict=False, weight=weight)

    def routed(self, engine: str) -> Routes:
        """The tables of an engine of the pFTree family."""
        found = PFTreeAsPrinted() if engine == PFTreeAsPrinted.name else load_engine(engine)
        options = Options(partitions=self.made_partitions(), max_lanes=8)
        return found.route(self.fabric, JobMix(()), options)

    def with_isolated(self, *names: str) -> Example:
        """The same example, in which these partitions have the policy `phy`."""
        return replace(self, isolated=frozenset(names))


LinkHosts = dict[tuple[str, str], dict[str, str]]
"""(switch, next switch) → partition → the hosts that its other members reach over this link."""


def hosts_by_link(example: Example, routes: Routes) -> LinkHosts:
    """Which members' routes use which link; links that no partition uses are left out."""
    fabric, names = example.fabric, example.fabric.switch_name
    found: LinkHosts = {}
    for name, hosts in example.partitions.items():
        members = example.terminals(hosts)
        counts = routes_over(fabric, routes, members, members)
        for row, channel in np.argwhere(counts > 0).tolist():
            ends = fabric.channel_source[channel], fabric.channel_target[channel]
            link = (names[int(ends[0])], names[int(ends[1])])
            used = found.setdefault(link, {})
            used[name] = used.get(name, "") + hosts[row]
    return found


def down_to(links: LinkHosts, root: str, leaf: str) -> str:
    """The hosts of a leaf switch that are reached from a root, in alphabetical order."""
    return "".join(sorted("".join(links.get((root, leaf), {}).values())))


def shared_down(links: LinkHosts) -> list[tuple[str, str]]:
    """The links from roots to leaf switches that several partitions use."""
    return sorted(link for link, used in links.items() if link[0][0] == "R" and len(used) > 1)


def draw_links(axes: Axes, example: Example, links: LinkHosts, title: str) -> None:
    """Draws the tree, with the hosts that are reached down each link, in their partition's
    colour."""
    leaves, roots = len(example.leaves), example.roots
    home = {host: name for name, hosts in example.partitions.items() for host in hosts}
    at = {f"L{n + 1}": (2.0 * n, 1.0) for n in range(leaves)}
    middle = leaves - 1.0
    at |= {f"R{n + 1}": (middle + 2.0 * (n - (roots - 1) / 2), 2.4) for n in range(roots)}
    for n in range(roots):
        for leaf in range(leaves):
            (x, y), (u, v) = at[f"R{n + 1}"], at[f"L{leaf + 1}"]
            axes.plot([x, u], [y, v], color="#cccccc", lw=1.2, zorder=0)
            used = links.get((f"R{n + 1}", f"L{leaf + 1}"), {})
            letters = [(host, name) for name, hosts in used.items() for host in sorted(hosts)]
            for place, (host, name) in enumerate(letters):
                share = 0.22 + 0.16 * place + 0.08 * (n % 2)
                axes.text(
                    x + (u - x) * share, y + (v - y) * share, host, fontsize=8, color="white",
                    ha="center", va="center",
                    bbox={"boxstyle": "circle,pad=0.2", "fc": TINTS[name], "ec": "none"},
                )  # fmt: skip
    for leaf, hosts in enumerate(example.leaves):
        x, y = at[f"L{leaf + 1}"]
        places = x + 0.45 * (np.arange(len(hosts)) - (len(hosts) - 1) / 2)
        for host, place in zip(hosts, places.tolist(), strict=True):
            axes.plot([x, place], [y, 0.2], color="#cccccc", lw=1.0, zorder=0)
            box = {"boxstyle": "circle,pad=0.25", "fc": TINTS[home[host]], "ec": "none"}
            axes.text(
                place, 0.1, host, fontsize=9, color="white", ha="center", va="center", bbox=box
            )
    for name, (x, y) in at.items():
        axes.text(x, y, name, fontsize=9, ha="center", va="center",
                  bbox={"boxstyle": "square", "fc": "white", "ec": "#666666"})  # fmt: skip
    axes.set(title=title, xticks=[], yticks=[], ylim=(-0.2, 2.8))
    axes.set_xlim(-1.0, 2.0 * leaves - 1.0)
    axes.spines[["left", "bottom"]].set_visible(False)


def draw_all(figure: Figure, example: Example, links: Mapping[str, LinkHosts]) -> None:
    """`draw_links` for each title, side by side."""
    places = figure.subplots(1, len(links), squeeze=False)[0]
    for axes, (title, each) in zip(places, links.items(), strict=True):
        draw_links(axes, example, each, title)


def described(links: LinkHosts, leaves: Sequence[str]) -> list[str]:
    """For each leaf switch, what each root carries to it, such as `R1: a d (1); R2: b c (2)`."""
    roots = sorted({link[0] for link in links if link[0][0] == "R"})
    cells = []
    for leaf in leaves:
        parts = []
        for root in roots:
            used = links.get((root, leaf), {})
            each = ", ".join(f"{' '.join(sorted(hosts))} ({name})" for name, hosts in used.items())
            parts.append(f"{root}: {each or '–'}")
        cells.append("; ".join(parts))
    return cells
