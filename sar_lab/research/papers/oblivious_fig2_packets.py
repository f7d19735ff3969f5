"""Oblivious-XGFT, Fig. 2, in packets: the paper's own kind of simulator with its parameters."""

from __future__ import annotations

from collections.abc import Sequence

from sar_lab.research.packets import PacketModel
from sar_lab.research.papers.claims import NEAR, value
from sar_lab.research.papers.oblivious_fig2 import ENGINES, by_label, draw_curves, slowdown_table
from sar_lab.research.papers.outcome import Figure, Outcome
from sar_lab.research.papers.slimmed_trees import slowdowns
from sar_lab.research.papers.worded_claims import PLAIN, judged
from sar_lab.research.papers.xgft_slowdown import RATE
from sar_lab.research.statistics import median_of

WHERE = "oblivious-xgft-2009, Fig. 2, in packets"
CLASS = "S"
PUBLISHED = (
    "WRF-256: S-mod-k and D-mod-k as good as pattern-aware routing, Random worse. CG.D-128: "
    "D-mod-k far worse than Random, its fifth phase 8 times as long as on a crossbar"
)
SEEDS = 20
MODEL = PacketModel()


def run(seeds: Sequence[int]) -> Outcome:
    """Slowdowns compared with a crossbar."""
    wrf = slowdowns("WRF-256", ENGINES, seeds, MODEL)
    cg = slowdowns("CG.D-128", ENGINES, seeds, MODEL)
    phase = slowdowns("CG.D-128, phase 5", ENGINES, seeds, MODEL)
    first = median_of(wrf["random"][16])
    claims = [
        judged("WRF-256: D-mod-k within 20 % of pattern-aware at every w2", by_label(wrf)),
        judged("WRF-256: Random never better than D-mod-k", by_label(wrf)),
        judged("WRF-256, w2 = 16: Random worse than D-mod-k", by_label(wrf, 16)),
        value("WRF-256, w2 = 16: slowdown of Random", 3.5, first.value, NEAR),
        value("CG.D-128, w2 = 16, phase 5: D-mod-k", 8, phase["dmodk"][16][0], NEAR),
        value("CG.D-128, w2 = 16, phase 5: Random", 4, median_of(phase["random"][16]).value, NEAR),
        judged(
            "CG.D-128, w2 = 16: the slowdown of D-mod-k above 2",
            {"the slowdown of D-mod-k": cg["dmodk"][16]},
            PLAIN,
            ours=f"{cg['dmodk'][16][0]:.2f}",
        ),
        judged("CG.D-128: Random better than D-mod-k at all but 2 w2", by_label(cg)),
        judged("CG.D-128: pattern-aware never worse than Random", by_label(cg)),
    ]

    def draw(figure: Figure) -> None:
        draw_curves(figure, wrf, cg)

    return Outcome(
        claims,
        f"{len(seeds)} seeds. Packets, not a fluid: links of {RATE:g} Gbit/s, flits of "
        f"{MODEL.flit_bytes} bytes, segments of {MODEL.segment_bytes:,}, messages of a host in "
        "turns, as printed; a queue for each output at each input and "
        f"{MODEL.buffer_segments} segments of buffer a link, which the paper does not print. "
        "Messages of 750 KB (CG) and 512 KB (WRF).",
        tables=[slowdown_table(wrf, "WRF-256"), slowdown_table(cg, "CG.D-128")],
        draw=draw,
    )
