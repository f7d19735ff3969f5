"""Oblivious-XGFT, Section VII-A and Fig. 3: the exchange of CG.D-128 that D-mod-k routes over two
roots only."""

from __future__ import annotations

from collections.abc import Sequence

from sar_lab.research.papers.claims import value
from sar_lab.research.papers.compared import PLAIN, Compared, claim
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pictures import COLOURS, LABELS, grouped_bars
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.xgft_slowdown import program, slimmed, times

SAID = quotes("oblivious-fig3")
EIGHT, TWICE = (quotes("oblivious-fig2")[name] for name in ("eight", "twice"))
ENGINES = ("smodk", "dmodk", "colored")


def oblivious_fig3(seeds: Sequence[int]) -> Outcome:
    """The slowdown of each phase."""
    fabric, view = slimmed(16)
    by_engine = {name: times(name, fabric, view, program("cgd128").phases) for name in ENGINES}
    whole = sum(by_engine["dmodk"]) / 5
    claims = [
        *(
            value(f"phases 1-4, {LABELS[name]}: slowdown", 1, max(each[:4]), said=SAID["local"])
            for name, each in by_engine.items()
        ),
        value("phase 5, D-mod-k", EIGHT, by_engine["dmodk"][4]),
        value("phase 5, S-mod-k: as D-mod-k", by_engine["dmodk"][4], by_engine["smodk"][4],
              said=SAID["identical"]),
        claim(Compared([whole], PLAIN) > 2, "the whole, D-mod-k above 2", said=TWICE),
        value("the whole, D-mod-k", SAID["whole"], whole),
        value("phase 5, pattern-aware", 1, by_engine["colored"][4], said=SAID["optimal"]),
    ]  # fmt: skip
    rows = [
        [LABELS[name], *(f"{t:.2f}" for t in each), f"{sum(each) / 5:.2f}"]
        for name, each in by_engine.items()
    ]
    return Outcome(
        claims,
        tables=[ResultTable(["slowdown of phase", "1", "2", "3", "4", "5", "all"], rows)],
        draw=lambda figure: _draw(figure, by_engine),
    )


def _draw(figure: Figure, by_engine: dict[str, list[float]]) -> None:
    axes = figure.subplots()
    rows = {LABELS[name]: each for name, each in by_engine.items()}
    grouped_bars(axes, [str(n) for n in range(1, 6)], rows, [COLOURS[name] for name in by_engine])
    axes.set(xlabel="phase of CG.D-128", ylabel="slowdown against a crossbar")
    axes.legend()
