"""pFTree, Fig. 1: tenants in a three-level fat tree of four sub-networks of 16 hosts each.

Four tenants of 16 hosts have a sub-network each. Three of 20, 24 and 20 share the second one. What
the figure is about is counted: links over which hosts of two tenants send to their own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.jobs.partitions import Partition, Policy, make_partitions
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.routing.engine import Options, load_engine
from sar_lab.research.papers.claims import value
from sar_lab.research.papers.compared import PLAIN, claim, compared
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pftree_printed import PFTreeAsPrinted
from sar_lab.research.papers.pictures import COLOURS, LABELS, grouped_bars, legend
from sar_lab.research.papers.published import quotes

TREE = "xgft:3;4,4,4;1,4,4"
SUB = 16
FITTING, SPREAD = "four of 16", "20, 24 and 20"
TENANTS = {
    FITTING: [[(n, 0, SUB)] for n in range(4)],
    SPREAD: [[(0, 0, 16), (1, 0, 4)], [(2, 0, 16), (1, 4, 12)], [(3, 0, 16), (1, 12, 16)]],
}
"""By tenant: (sub-network, first host, past the last); the second sub-network is shared."""
ENGINES = ("ftree", "pftree-printed", "pftree", "pftree-ext")
ISOLATING = ("pftree-ext",)
"""Here all tenants have the policy `phy`."""


def pftree_fig1(seeds: Sequence[int]) -> Outcome:
    """Links of several tenants, of four that fit into sub-networks and of three that do not."""
    said = quotes("pftree-fig1")
    shared = {case: {name: shared_links(case, name) for name in ENGINES} for case in TENANTS}
    at = compared({case: [each["ftree"]] for case, each in shared.items()}, PLAIN)
    claims = [
        value("fat-tree: links of several tenants, four of 16", 0, shared[FITTING]["ftree"],
              said=said["fitting"]),
        claim(at[SPREAD] > at[FITTING],
              "fat-tree: links of several tenants: more with three of 20, 24 and 20 than with four",
              ours=f"{shared[SPREAD]['ftree']} of {_channels()}", said=said["share"]),
        *(
            value(f"{LABELS[name]}: links of several tenants, 20, 24 and 20", 0,
                  shared[SPREAD][name], said=said["aware"])
            for name in ENGINES[1:]
        ),
    ]  # fmt: skip
    rows = [[LABELS[name], *(str(each[name]) for each in shared.values())] for name in ENGINES]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        bars = {LABELS[n]: [float(each[n]) for each in shared.values()] for n in ENGINES}
        grouped_bars(axes, list(TENANTS), bars, [COLOURS[n] for n in ENGINES])
        axes.set(ylabel=f"links of several tenants, of {_channels()}", xlabel="tenants")
        legend(figure, ncols=2)

    return Outcome(claims, [ResultTable(["links of several tenants", *TENANTS], rows)], draw)


def _channels() -> int:
    return xgft_fabric(TREE).channels


def shared_links(case: str, engine: str) -> int:
    """Channels over which hosts of more than one tenant send to their own."""
    fabric = xgft_fabric(TREE)
    policy = Policy.PHY if engine in ISOLATING else Policy.DEF
    tenants = [
        np.concatenate([np.arange(SUB * sub + a, SUB * sub + b) for sub, a, b in parts])
        for parts in TENANTS[case]
    ]
    parts = [
        Partition(str(n), n, np.sort(hosts).astype(np.int32), policy)
        for n, hosts in enumerate(tenants, 1)
    ]
    partitions = make_partitions(parts, fabric, strict=False)
    found = PFTreeAsPrinted() if engine == PFTreeAsPrinted.name else load_engine(engine)
    routes = found.route(fabric, JobMix(()), Options(partitions=partitions))
    mix = JobMix.of([make_job(part.name, part.terminals) for part in parts])
    every = traffic_of(fabric, mix, routes).every
    users = np.bincount(every.channel[: every.offset[-1]], minlength=1)
    return int((users > 1).sum())
