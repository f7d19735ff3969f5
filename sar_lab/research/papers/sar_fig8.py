"""SAR, Fig. 8: an all-to-all of 28 hosts on ten leaf switches of one island of Taurus."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import Job, JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing import Options
from sar_lab.fluid import PATTERNS, job_times
from sar_lab.opensm_tables import lab_engine
from sar_lab.replay.chain import CachedEngine
from sar_lab.research.papers.claims import NEAR, Claim, times_as_much, value
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.outcome import Figure, Outcome, median_table
from sar_lab.research.papers.pictures import COLOURS, LABELS, bars
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.worded_claims import judged

SAID = quotes("sar-fig8")
HOSTS, LEAVES = 28, 10
_RATIO = 1 + SAID["dfsssp"].number / 100
_LESS = [1 - percent / 100 for percent in SAID["sar"].numbers]
PRINTED = (("DFSSSP", "fat-tree", _RATIO, "dfsssp"), ("DFSSSP", "SAR", 1 / _LESS[0], "sar"),
           ("fat-tree", "SAR", 1 / _LESS[1], "sar"))  # fmt: skip
"""The slower, the faster, how many times as long it takes, and the quote."""
ENGINES = {e: LABELS[e] for e in ("opensm-ftree", "opensm-dfsssp", "sar", "sar-plus")}
_SHOWN = {"shift-free": "one after the other", "alltoall": "all at once"}
"""Open MPI's fixed rule sends blocks from 3,000 bytes in pairs, one after the other: these are the
claims. The other order is shown for comparison."""


def scattered_job(fabric: Fabric, seed: int) -> Job:
    """28 hosts on ten leaf switches of the first large island, at least two on each."""
    random = np.random.default_rng(seed)
    island = [s for s in fabric.leaves if fabric.switch_name[s].startswith("I5-")]
    leaves = random.choice(island, LEAVES, replace=False)
    extra = random.multinomial(HOSTS - 2 * LEAVES, np.full(LEAVES, 1 / LEAVES))
    hosts = [
        random.choice(np.flatnonzero(fabric.terminal_switch == leaf), 2 + more, replace=False)
        for leaf, more in zip(leaves, extra, strict=True)
    ]
    return make_job("fig8", np.concatenate(hosts))


def sar_fig8(seeds: Sequence[int]) -> Outcome:
    """Each seed is another placement of the job; as in the paper, no other job sends."""
    drawn = times(list(seeds))
    one_by_one = {label: drawn[name, "shift-free"] for name, label in ENGINES.items()}
    added = {label: float(np.mean(each)) - 1 for label, each in one_by_one.items()}
    claims = [
        *(claim for each in PRINTED for claim in _slower(one_by_one, *each)),
        value("what contention adds: SAR, share of fat-tree", SAID["halves"],
              added["SAR"] / added["fat-tree"], NEAR),
    ]  # fmt: skip
    return Outcome(
        claims,
        tables=[
            median_table(
                "time",
                {how: pattern for pattern, how in _SHOWN.items()},
                {label: name for name, label in ENGINES.items()},
                lambda name, pattern: drawn[name, pattern],
            )
        ],
        draw=lambda figure: _draw(figure, drawn),
    )


@measured
def times(seeds: list[int]) -> dict[tuple[str, str], list[float]]:
    """(engine, order) → the time of each placement."""
    fabric = load_fabric("standin:taurus")
    drawn: dict[tuple[str, str], list[float]] = {}
    engines = {name: CachedEngine(lab_engine(name)) for name in ENGINES}
    for seed in seeds:
        mix = JobMix.of([scattered_job(fabric, seed)])
        for name, engine in engines.items():
            routes = engine.route(fabric, mix, Options())
            for pattern in _SHOWN:
                time = job_times(fabric, mix, routes, PATTERNS[pattern]).time[0]
                drawn.setdefault((name, pattern), []).append(float(time))
    return drawn


def _slower(
    times: dict[str, list[float]], slow: str, fast: str, printed: float, quote: str
) -> list[Claim]:
    """The order, by pairs of the same placement, and how large it is."""
    ratio = times_as_much(times[slow], times[fast])
    says = f"one after the other: {slow} slower than {fast}"
    return [
        judged(says, {name: [draws] for name, draws in times.items()}, said=SAID[quote],
               ours=f"{ratio.words()} times as long"),
        value(f"{slow} against {fast}: times as long", printed, ratio.value, NEAR,
              said=SAID[quote]),
    ]  # fmt: skip


def _draw(figure: Figure, drawn: dict[tuple[str, str], list[float]]) -> None:
    """All times, and what the claims are about: times on the same placement as SAR."""
    *places, paired = figure.subplots(1, len(_SHOWN) + 1, width_ratios=(1, 1, 1.1))
    at = np.arange(len(ENGINES))
    colours = [COLOURS[name] for name in ENGINES]
    for axes, (pattern, how) in zip(places, _SHOWN.items(), strict=True):
        times = [drawn[name, pattern] for name in ENGINES]
        boxes = axes.boxplot(times, positions=at.tolist(), whis=(0, 100), widths=0.6,
                             patch_artist=True)  # fmt: skip
        for box, line, colour in zip(boxes["boxes"], boxes["medians"], colours, strict=True):
            box.set_facecolor(colour)
            line.set_color("black")
        axes.set(
            title=f"{how}, n = {len(times[0])}", ylim=(0.9, 1.05 * max(map(max, drawn.values())))
        )
    places[0].set_ylabel("time, 1 = no contention\n(box: half of the draws; bars: all)")
    first = next(iter(_SHOWN))
    ratios = [times_as_much(drawn[name, first], drawn["sar", first]) for name in ENGINES]
    bars(paired, at, ratios, 0.6, color=colours, capsize=3)
    printed = {slow: more for slow, fast, more, _ in PRINTED if fast == "SAR"}
    where = [list(ENGINES.values()).index(slow) for slow in printed]
    paired.plot(where, list(printed.values()), "kD", ms=8, mfc="none", label="published")
    paired.axhline(1.0, color="black", lw=0.8)
    most = 1.15 * max(each.value for each in ratios)
    paired.set(title=f"{_SHOWN[first]}, n = {ratios[0].n}", ylim=(0, most),
               ylabel="times as long as SAR\n(bars: 95 % intervals)")  # fmt: skip
    paired.legend(loc="upper right", fontsize="small")
    for axes in (*places, paired):
        axes.set_xticks(at, list(ENGINES.values()), rotation=25)
