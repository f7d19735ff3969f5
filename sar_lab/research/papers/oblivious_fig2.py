"""Oblivious-XGFT, Fig. 2: WRF-256 and CG.D-128 on 16-ary 2-trees whose roots are removed one by
one, in a fluid and in packets."""

from __future__ import annotations

from collections.abc import Sequence

from sar_lab.research.packets import PacketModel
from sar_lab.research.papers.claims import NEAR, Claim, value
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable, median_table
from sar_lab.research.papers.pictures import LABELS
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.slimmed_trees import ROOTS, Slowdowns, curves, slowdowns
from sar_lab.research.papers.worded_claims import MEDIANS, PLAIN, Draws, Judge, judged
from sar_lab.research.papers.xgft_slowdown import RATE
from sar_lab.research.statistics import median_of

SAID = quotes("oblivious-fig2")
ENGINES = ("smodk", "dmodk", "random", "colored")
WORKLOADS = ("WRF-256", "CG.D-128", "CG.D-128, phase 5")
MODEL = PacketModel()


def oblivious_fig2(seeds: Sequence[int]) -> Outcome:
    """Slowdowns compared with a crossbar, in a fluid."""
    wrf, cg, phase = (slowdowns(each, ENGINES, seeds) for each in WORKLOADS)
    same = [r for r in ROOTS if wrf["colored"][r][0] < wrf["dmodk"][r][0]]
    curve: dict[str, list[Draws]] = {"⌈16/w2⌉": [[-(-16 // roots)] for roots in ROOTS]}
    curve |= by_label(wrf)
    claims = [
        judged("WRF-256: S-mod-k equals ⌈16/w2⌉ at every w2", curve, MEDIANS, said=SAID["steps"]),
        judged("WRF-256: D-mod-k equals ⌈16/w2⌉ at every w2", curve, MEDIANS, said=SAID["steps"]),
        judged("WRF-256: D-mod-k equals pattern-aware at every w2", curve, MEDIANS,
               ours=no_roots(same), said=SAID["same-as-aware"]),
        *common_claims(wrf, cg, phase, MEDIANS),
    ]  # fmt: skip
    return _outcome(claims, wrf, cg)


def oblivious_fig2_packets(seeds: Sequence[int]) -> Outcome:
    """The same in packets: the paper's own kind of simulator with its parameters."""
    wrf, cg, phase = (slowdowns(each, ENGINES, seeds, MODEL) for each in WORKLOADS)
    near = "WRF-256: D-mod-k within 20 % of pattern-aware at every w2"
    first = judged(near, by_label(wrf), said=SAID["same-as-aware"])
    return _outcome([first, *common_claims(wrf, cg, phase, None)], wrf, cg)


def _outcome(claims: Sequence[Claim], wrf: Slowdowns, cg: Slowdowns) -> Outcome:
    both = {"WRF-256": wrf, "CG.D-128": cg}

    def draw(figure: Figure) -> None:
        for axes, (title, each) in zip(figure.subplots(1, 2), both.items(), strict=True):
            curves(axes, each, title)

    tables = [slowdown_table(each, title) for title, each in both.items()]
    return Outcome(claims, tables, draw, words={"RATE": RATE})


def common_claims(
    wrf: Slowdowns, cg: Slowdowns, phase: Slowdowns, judge: Judge | None
) -> list[Claim]:
    """What the fluid and the packets are both held against."""
    whole = {"the slowdown of D-mod-k": cg["dmodk"][16]}
    random = {name: median_of(each["random"][16]).value for name, each in
              (("wrf", wrf), ("phase", phase))}  # fmt: skip
    return [
        judged("WRF-256: pattern-aware never worse than D-mod-k", by_label(wrf), PLAIN,
               said=SAID["upper-bound"]),
        judged("WRF-256: Random never better than D-mod-k", by_label(wrf), judge,
               said=SAID["same-as-aware"]),
        judged("WRF-256, w2 = 16: Random worse than D-mod-k", by_label(wrf, 16), judge,
               said=SAID["same-as-aware"]),
        value("WRF-256, w2 = 16: slowdown of Random", SAID["random-on-wrf"], random["wrf"], NEAR),
        value("CG.D-128, w2 = 16, phase 5: D-mod-k", SAID["eight"], phase["dmodk"][16][0], NEAR),
        value("CG.D-128, w2 = 16, phase 5: Random", SAID["random-phase-5"], random["phase"], NEAR),
        judged("CG.D-128, w2 = 16: the slowdown of D-mod-k above 2", whole, PLAIN,
               ours=f"{cg['dmodk'][16][0]:.2f}", said=SAID["twice"]),
        judged("CG.D-128: Random better than D-mod-k at all but 2 w2", by_label(cg), judge,
               said=SAID["random-on-cg"]),
        judged("CG.D-128: pattern-aware never worse than Random", by_label(cg), judge,
               said=SAID["random-below-aware"]),
    ]  # fmt: skip


def by_label(by_engine: Slowdowns, roots: int | None = None) -> dict[str, list[Draws]]:
    """The name of an engine in claims → its slowdowns at each w2, or at one."""
    some = ROOTS if roots is None else (roots,)
    return {LABELS[name]: [each[r] for r in some] for name, each in by_engine.items()}


def no_roots(roots: list[int]) -> str:
    """Where a claim does not hold, or yes."""
    return "yes" if not roots else f"not at w2 = {', '.join(map(str, roots))}"


def slowdown_table(by_engine: Slowdowns, title: str) -> ResultTable:
    """A row for each engine, a column for some w2."""
    shown = {str(roots): roots for roots in (16, 12, 10, 8, 4, 2, 1)}
    return median_table(f"{title}, w2 =", shown, by_engine, lambda of, roots: of[roots])
