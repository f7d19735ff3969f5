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

SAID = quotes("oblivious-fig2")
MODEL = PacketModel()


def oblivious_fig2_packets(seeds: Sequence[int]) -> Outcome:
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
        words={"RATE": RATE},
        tables=[slowdown_table(wrf, "WRF-256"), slowdown_table(cg, "CG.D-128")],
        draw=draw,
    )
