"""Oblivious-XGFT, Fig. 2, in packets: the paper's own kind of simulator with its parameters."""

from __future__ import annotations

from collections.abc import Sequence

from sar_lab.research.packets import PacketModel
from sar_lab.research.papers.oblivious_fig2 import (
    ENGINES,
    by_label,
    common_claims,
    draw_curves,
    slowdown_table,
)
from sar_lab.research.papers.outcome import Figure, Outcome
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.slimmed_trees import slowdowns
from sar_lab.research.papers.worded_claims import judged
from sar_lab.research.papers.xgft_slowdown import RATE

WHERE = "oblivious-xgft-2009, Fig. 2, in packets"
CLASS = "S"
SAID = quotes("oblivious-fig2")
SEEDS = 20
MODEL = PacketModel()


def run(seeds: Sequence[int]) -> Outcome:
    """Slowdowns compared with a crossbar."""
    wrf = slowdowns("WRF-256", ENGINES, seeds, MODEL)
    cg = slowdowns("CG.D-128", ENGINES, seeds, MODEL)
    phase = slowdowns("CG.D-128, phase 5", ENGINES, seeds, MODEL)
    claims = [
        judged("WRF-256: D-mod-k within 20 % of pattern-aware at every w2", by_label(wrf),
               said=SAID["same-as-aware"]),
        *common_claims(wrf, cg, phase, None),
    ]  # fmt: skip

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
