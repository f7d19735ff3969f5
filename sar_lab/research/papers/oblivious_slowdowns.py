"""Oblivious-XGFT, Figs. 2 and 5: WRF-256 and CG.D-128 on 16-ary 2-trees whose roots are removed one
by one, in a fluid and in packets, and whether scrambled labels save D-mod-k from patterns like its
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from sar_lab.research.packets import PacketModel
from sar_lab.research.papers.claims import NEAR, Claim, value
from sar_lab.research.papers.compared import (
    MEDIANS,
    PLAIN,
    Draws,
    Judge,
    all_but,
    claim,
    compared,
    most,
    never,
)
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.outcome import Axes, Figure, Outcome, ResultTable, median_table
from sar_lab.research.papers.pictures import COLOURS, LABELS
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.xgft_slowdown import RATE, program, slimmed, times
from sar_lab.research.statistics import median_of

if TYPE_CHECKING:
    from matplotlib.artist import Artist

ROOTS = tuple(range(16, 0, -1))
PROGRAM = {"WRF-256": "wrf256", "CG.D-128": "cgd128"}
DRAWN = {"random", "rnca-u", "rnca-d"}
"""Engines that differ from seed to seed."""
Slowdowns = dict[str, dict[int, list[float]]]
"""Engine → w2 → the slowdown of each seed."""


def slowdowns(
    workload: str, engines: Sequence[str], seeds: Sequence[int], packets: PacketModel | None = None
) -> Slowdowns:
    """Slowdowns of the whole program, or of one phase if the workload names it. All phases take
    equally long on a crossbar, so the slowdown of a program is their mean."""
    results: Slowdowns = {}
    for name in engines:
        drawn = seeds if name in DRAWN else (0,)
        results[name] = {
            roots: _slowdowns(workload, name, roots, list(drawn), packets) for roots in ROOTS
        }
    return results


def _slowdowns(
    workload: str, name: str, roots: int, seeds: list[int], packets: PacketModel | None
) -> list[float]:
    base, _, phase = workload.partition(", phase ")
    each = _times(base, name, roots, seeds, packets)
    return [times[int(phase) - 1] if phase else float(np.mean(times)) for times in each]


@measured
def _times(
    workload: str, name: str, roots: int, seeds: list[int], packets: PacketModel | None
) -> list[list[float]]:
    """The phases' slowdowns of each seed."""
    fabric, view = slimmed(roots)
    phases = program(PROGRAM[workload]).phases
    return [times(name, fabric, view, phases, seed, packets=packets) for seed in seeds]


def curves(axes: Axes, results: Slowdowns, title: str) -> None:
    """Draws medians over w2, from 16 roots to one, with the middle half of the seeds."""
    for name, by_roots in results.items():
        draws = [by_roots[roots] for roots in ROOTS]
        label, colour = LABELS.get(name, name), COLOURS.get(name)
        style = "--" if name == "dmodk" else "-"
        axes.plot(ROOTS, [median_of(d).value for d in draws], style, label=label, color=colour)
        if len(draws[0]) > 1:
            low, high = np.percentile(np.array(draws), [25, 75], axis=1)
            axes.fill_between(ROOTS, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.set(title=title, xlabel="roots (w2)", ylabel="slowdown against a crossbar", ylim=0)
    axes.set_xticks(ROOTS[::3])
    axes.invert_xaxis()
    axes.legend()


FIG2 = quotes("oblivious-fig2")
ENGINES_2 = ("smodk", "dmodk", "random", "colored")
WORKLOADS = ("WRF-256", "CG.D-128", "CG.D-128, phase 5")
MODEL = PacketModel()


def oblivious_fig2(seeds: Sequence[int]) -> Outcome:
    """Slowdowns compared with a crossbar, in a fluid."""
    wrf, cg, phase = (slowdowns(each, ENGINES_2, seeds) for each in WORKLOADS)
    same = [r for r in ROOTS if wrf["colored"][r][0] < wrf["dmodk"][r][0]]
    at = compared(of_roots(wrf), MEDIANS)
    steps = compared({"steps": [[-(-16 // roots)] for roots in ROOTS]}, MEDIANS)["steps"]
    claims = [
        claim(at["smodk"].equals(steps), "WRF-256: S-mod-k equals ⌈16/w2⌉ at every w2",
              said=FIG2["steps"]),
        claim(at["dmodk"].equals(steps), "WRF-256: D-mod-k equals ⌈16/w2⌉ at every w2",
              said=FIG2["steps"]),
        claim(at["dmodk"].equals(at["colored"]),
              "WRF-256: D-mod-k equals pattern-aware at every w2",
              ours=no_roots(same), said=FIG2["same-as-aware"]),
        *common_claims(wrf, cg, phase, MEDIANS),
    ]  # fmt: skip
    return _outcome(claims, wrf, cg)


def oblivious_fig2_packets(seeds: Sequence[int]) -> Outcome:
    """The same in packets: the paper's own kind of simulator with its parameters."""
    wrf, cg, phase = (slowdowns(each, ENGINES_2, seeds, MODEL) for each in WORKLOADS)
    at, near = compared(of_roots(wrf)), "WRF-256: D-mod-k within 20 % of pattern-aware at every w2"
    first = claim(at["dmodk"].within(0.2, at["colored"]), near, said=FIG2["same-as-aware"])
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
    """The claims of which both simulators, the fluid one and that of packets, are tested."""
    plain, at, at_16 = (
        compared(of_roots(wrf), PLAIN), compared(of_roots(wrf), judge),
        compared(of_roots(wrf, 16), judge),
    )  # fmt: skip
    cgd = compared(of_roots(cg), judge)
    whole = compared(of_roots(cg, 16), PLAIN)["dmodk"]
    random = {name: median_of(each["random"][16]).value for name, each in
              (("wrf", wrf), ("phase", phase))}  # fmt: skip
    return [
        claim(never(plain["colored"] > plain["dmodk"]),
              "WRF-256: pattern-aware never worse than D-mod-k", said=FIG2["upper-bound"]),
        claim(never(at["random"] < at["dmodk"]), "WRF-256: Random never better than D-mod-k",
              said=FIG2["same-as-aware"]),
        claim(at_16["random"] > at_16["dmodk"], "WRF-256, w2 = 16: Random worse than D-mod-k",
              said=FIG2["same-as-aware"]),
        value("WRF-256, w2 = 16: slowdown of Random", FIG2["random-on-wrf"], random["wrf"], NEAR),
        value("CG.D-128, w2 = 16, phase 5: D-mod-k", FIG2["eight"], phase["dmodk"][16][0], NEAR),
        value("CG.D-128, w2 = 16, phase 5: Random", FIG2["random-phase-5"], random["phase"], NEAR),
        claim(whole > 2, "CG.D-128, w2 = 16: the slowdown of D-mod-k above 2",
              ours=f"{cg['dmodk'][16][0]:.2f}", said=FIG2["twice"]),
        claim(all_but(2, cgd["random"] < cgd["dmodk"]),
              "CG.D-128: Random better than D-mod-k at all but 2 w2", said=FIG2["random-on-cg"]),
        claim(never(cgd["colored"] > cgd["random"]),
              "CG.D-128: pattern-aware never worse than Random", said=FIG2["random-below-aware"]),
    ]  # fmt: skip


def of_roots(by_engine: Slowdowns, roots: int | None = None) -> dict[str, list[Draws]]:
    """Engine → its slowdowns at each w2, or at one."""
    some = ROOTS if roots is None else (roots,)
    return {name: [each[r] for r in some] for name, each in by_engine.items()}


def no_roots(roots: list[int]) -> str:
    """Where a claim does not hold, or yes."""
    return "yes" if not roots else f"not at w2 = {', '.join(map(str, roots))}"


def slowdown_table(by_engine: Slowdowns, title: str) -> ResultTable:
    """A row for each engine, a column for some w2."""
    shown = {str(roots): roots for roots in (16, 12, 10, 8, 4, 2, 1)}
    return median_table(f"{title}, w2 =", shown, by_engine, lambda of, roots: of[roots])


FIG5 = quotes("oblivious-fig5")
ENGINES_5 = ("dmodk", "random", "rnca-u", "rnca-d", "colored")
LINES: tuple[tuple[str, Literal["--", ":"]], ...] = (("dmodk", "--"), ("colored", ":"))


def oblivious_fig5(seeds: Sequence[int]) -> Outcome:
    """The slowdowns over seeds."""
    wrf = slowdowns("WRF-256", ENGINES_5, seeds)
    cg = slowdowns("CG.D-128", ENGINES_5, seeds)
    phase = slowdowns("CG.D-128, phase 5", ENGINES_5, seeds)
    claims = []
    for title, by_engine, quote in (("WRF-256", wrf, "wrf"), ("CG.D-128", cg, "cg")):
        at, says = compared(of_roots(by_engine)), f"{title}: r-NCA-u better than Random"
        apart = {r: np.subtract(by_engine["rnca-u"][r], by_engine["rnca-d"][r]) for r in ROOTS}
        same = float(max(abs(each).max() for each in apart.values()))
        claims += [
            claim(all_but(1, at["rnca-u"] < at["random"]), f"{says} at all but 1 w2",
                  said=FIG5[quote]),
            value(f"{title}: r-NCA-d less r-NCA-u", 0, same, said=FIG5["symmetric"]),
        ]  # fmt: skip
    at, at_16 = compared(of_roots(wrf)), compared(of_roots(phase, 16))
    claims += [
        claim(most(at["rnca-u"].within(0.2, at["dmodk"])),
              "WRF-256: r-NCA-u within 20 % of D-mod-k at most w2", said=FIG5["wrf-near"]),
        claim(at_16["rnca-u"] < at_16["dmodk"],
              "CG.D-128, w2 = 16, phase 5: r-NCA-u better than D-mod-k",
              ours=", ".join(f"{np.mean(phase[n][16]):.2f}" for n in ("rnca-u", "dmodk")),
              said=FIG5["pathological"]),
    ]  # fmt: skip
    return Outcome(
        claims,
        tables=[
            slowdown_table({LABELS[name]: each for name, each in by_engine.items()}, title)
            for by_engine, title in ((wrf, "WRF-256"), (cg, "CG.D-128"))
        ],
        draw=lambda figure: _draw_boxes(figure, wrf, cg),
    )


def _draw_boxes(figure: Figure, wrf: Slowdowns, cg: Slowdowns) -> None:
    for axes, by_engine, title in zip(
        figure.subplots(2, 1), (wrf, cg), ("WRF-256", "CG.D-128"), strict=True
    ):
        _boxes(axes, by_engine)
        axes.set(title=title, ylabel="slowdown", ylim=0)
        axes.set_xticks(range(len(ROOTS)), map(str, ROOTS))
    figure.axes[1].set_xlabel("roots (w2)")


def _boxes(axes: Axes, by_engine: Slowdowns) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    drawn = [name for name in ENGINES_5 if name in DRAWN]
    for place, name in enumerate(drawn):
        at = [i + 0.26 * (place - 1) for i in range(len(ROOTS))]
        boxes = axes.boxplot(
            [by_engine[name][r] for r in ROOTS], positions=at, widths=0.2, whis=(0, 100),
            patch_artist=True, manage_ticks=False,
        )  # fmt: skip
        for box in boxes["boxes"]:
            box.set_facecolor(COLOURS[name])
        for line in boxes["medians"]:
            line.set(color="black", linewidth=2)
    for name, style in LINES:
        axes.plot([by_engine[name][r][0] for r in ROOTS], style, color=COLOURS[name])
    handles: list[Artist] = [Patch(color=COLOURS[name], label=LABELS[name]) for name in drawn]
    for name, style in LINES:
        handles.append(Line2D([], [], linestyle=style, color=COLOURS[name], label=LABELS[name]))
    axes.legend(handles=handles)
