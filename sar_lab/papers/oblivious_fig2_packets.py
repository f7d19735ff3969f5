"""Oblivious-XGFT, Fig. 2, in packets: the paper's own kind of simulator with its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sar_lab.packets import PacketModel
from sar_lab.papers.claims import NEAR, order, times_as_much, told_apart, value
from sar_lab.papers.oblivious_fig2 import ENGINES, draw_curves, no_roots, slowdown_table
from sar_lab.papers.outcome import outcome
from sar_lab.papers.registry import ExperimentResult
from sar_lab.papers.slimmed_trees import ROOTS, Slowdowns, slowdowns
from sar_lab.papers.xgft_slowdown import RATE
from sar_lab.statistics import median_of

NAME = "oblivious-fig2-packets"
WHERE = "oblivious-xgft-2009, Fig. 2, in packets"
CLASS = "S"
PUBLISHED = (
    "WRF-256: S-mod-k and D-mod-k as good as pattern-aware routing, Random worse. CG.D-128: "
    "D-mod-k far worse than Random, its fifth phase 8 times as long as on a crossbar"
)
SEEDS = 20
MODEL = PacketModel()

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run(seeds: Sequence[int], out: Path) -> ExperimentResult:
    """Slowdowns compared with a crossbar."""
    wrf = slowdowns("WRF-256", ENGINES, seeds, MODEL)
    cg = slowdowns("CG.D-128", ENGINES, seeds, MODEL)
    phase = slowdowns("CG.D-128, phase 5", ENGINES, seeds, MODEL)
    same = [r for r in ROOTS if abs(wrf["dmodk"][r][0] / wrf["colored"][r][0] - 1) > NEAR]
    first = median_of(wrf["random"][16])
    slower = [_slower(cg, "dmodk", "random", roots) for roots in ROOTS]
    worse = [r for r in ROOTS if _slower(cg, "colored", "random", r)]
    claims = [
        order(
            f"WRF-256: D-mod-k within {NEAR:.0%} of pattern-aware at every w2",
            not same,
            no_roots(same),
        ),
        order(
            "WRF-256: Random is never better than D-mod-k, and worse at w2 = 16",
            all(_slower(wrf, "dmodk", "random", r) is not True for r in ROOTS)
            and _slower(wrf, "random", "dmodk", 16) is True,
        ),
        value("WRF-256, w2 = 16: slowdown of Random", 3.5, first.value, NEAR),
        value("CG.D-128, w2 = 16, phase 5: D-mod-k", 8, phase["dmodk"][16][0], NEAR),
        value("CG.D-128, w2 = 16, phase 5: Random", 4, median_of(phase["random"][16]).value, NEAR),
        order(
            "CG.D-128, w2 = 16: D-mod-k takes more than twice as long in all",
            cg["dmodk"][16][0] > 2,
            f"{cg['dmodk'][16][0]:.2f}",
        ),
        order(
            "CG.D-128: Random is better than D-mod-k in almost all trees",
            slower.count(True) >= len(ROOTS) - 2,
            f"in {slower.count(True)} of {len(ROOTS)}, worse in {slower.count(False)}",
        ),
        order("CG.D-128: pattern-aware is never worse than Random", not worse, no_roots(worse)),
    ]

    def draw(figure: Figure) -> None:
        draw_curves(figure, wrf, cg)

    return outcome(
        out / f"{NAME}.png",
        claims,
        f"{len(seeds)} seeds. Packets, not a fluid: links of {RATE:g} Gbit/s, flits of "
        f"{MODEL.flit_bytes} bytes, segments of {MODEL.segment_bytes:,}, messages of a host in "
        "turns, as printed; a queue for each output at each input and "
        f"{MODEL.buffer_segments} segments of buffer a link, which the paper does not print. "
        "Messages of 750 KB (CG) and 512 KB (WRF).",
        tables=[slowdown_table(wrf, "WRF-256"), slowdown_table(cg, "CG.D-128")],
        draw=draw,
    )


def _slower(by_engine: Slowdowns, name: str, other: str, roots: int) -> bool | None:
    """Whether `name` takes longer; draws of a fixed engine are repeated for each seed."""
    draws = [by_engine[each][roots] for each in (name, other)]
    count = max(map(len, draws))
    pairs = [each * count if len(each) == 1 else each for each in draws]
    return told_apart(times_as_much(*pairs))
