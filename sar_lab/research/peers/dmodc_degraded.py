"""Dmodc's degradation study: congestion risk as cables of a fat tree die, with our engines beside.

For each seed the cables between switches are shuffled once, and the first 0 to 20 % of them are
dead, so that every degree of damage contains the one before. All hosts take part.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sar_agent.errors import Unserved
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing import Options, load_engine
from sar_lab.research.papers.claims import more, order, times_as_much, told_apart
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.pictures import band
from sar_lab.research.peers.congestion_risk import TableWalk, random_permutations, shifts
from sar_lab.research.statistics import median_of

SPEC = "xgft:3;12,12,12;1,12,12"
DEAD = (0, 1, 2, 5, 10, 15, 20)
"""Per cent of the cables between switches."""
ENGINES = ("dmodc", "ftree", "updn", "dfsssp", "sar-plus")
COLOURS = {
    "dmodc": "#ee6677", "ftree": "#228833", "updn": "#ccbb44", "dfsssp": "#999999",
    "sar-plus": "#4477aa",
}  # fmt: skip
PATTERNS = ("shift", "random permutation", "all-to-all")
DRAWS = 200
"""Random permutations; the risk is their median, as the largest would be one unlucky draw."""
Risks = dict[str, dict[str, dict[int, list[float]]]]
"""Pattern → engine → per cent of dead cables → the risk of each seed that was served."""


def dmodc_degraded(seeds: Sequence[int]) -> Outcome:
    """All engines on all degrees of damage."""
    risks: Risks = {p: {e: {dead: [] for dead in DEAD} for e in ENGINES} for p in PATTERNS}
    whole = load_fabric(SPEC)
    for seed in seeds:
        for dead in DEAD:
            for engine, found in risks_by_engine(dead, seed).items():
                for pattern, risk in found.items():
                    risks[pattern][engine][dead].append(risk)
    shift = risks["shift"]
    claims = [
        order(
            "shift, whole tree: no two flows of a shift meet",
            set(shift["dmodc"][0]) == {1},
            f"{max(shift['dmodc'][0]):g}",
        ),
        *(
            more(
                f"shift, {dead} % dead: lower risk than {other}",
                shift[other][dead],
                shift["dmodc"][dead],
                what="times dmodc's",
            )
            for dead in (1,)
            for other in ("updn", "dfsssp")
        ),
        *(
            order(
                f"{pattern}, 20 % dead: not above {other}",
                told_apart(times_as_much(risk["dmodc"][20], risk[other][20])) is not True,
                f"{times_as_much(risk['dmodc'][20], risk[other][20]).words()} times",
            )
            for pattern, risk in (*risks.items(),)[1:]
            for other in ("updn", "dfsssp")
        ),
    ]

    def draw(figure: Figure) -> None:
        for axes, (title, engines) in zip(figure.subplots(1, 3), risks.items(), strict=True):
            for engine, by_dead in engines.items():
                ends = [median_of(by_dead[dead]) for dead in DEAD if by_dead[dead]]
                served = [dead for dead in DEAD if by_dead[dead]]
                band(
                    axes, served, ends, "o-", color=COLOURS[engine], alpha=0.15, ms=3, label=engine
                )
            axes.set(title=title, xlabel="dead cables (%)", ylim=0)
            axes.set_xticks((0, 5, 10, 15, 20))
        figure.axes[0].set_ylabel("most flows on a link")
        figure.axes[0].legend(fontsize=8)
        figure.suptitle(
            f"{SPEC}: {whole.terminals:,} hosts, n = {len(seeds)} draws of dead cables; bands are "
            "95 % intervals of medians",
            fontsize=9,
        )

    tables = [
        ResultTable(
            [f"{title}, dead cables", *(f"{dead} %" for dead in DEAD)],
            [[engine, *(_cell(engines[engine][dead]) for dead in DEAD)] for engine in ENGINES],
        )
        for title, engines in risks.items()
    ]
    return Outcome(claims, words={"shifts": whole.terminals - 1}, tables=tables, draw=draw)


def damaged(whole: Fabric, dead: int, seed: int) -> Fabric:
    """The fabric without `dead` per cent of its cables between switches; a seed has one order in
    which they die."""
    cables = np.flatnonzero(np.arange(whole.channels) < whole.channel_reverse)
    order_of_death = np.random.default_rng(seed).permutation(cables)
    return whole.with_links_down(order_of_death[: round(len(cables) * dead / 100)])


@measured
def risks_by_engine(dead: int, seed: int) -> dict[str, dict[str, float]]:
    """`risks_of` every engine, on one damaged tree."""
    fabric = damaged(load_fabric(SPEC), dead, seed)
    return {engine: risks_of(fabric, engine, seed) for engine in ENGINES}


def risks_of(fabric: Fabric, engine: str, seed: int) -> dict[str, float]:
    """The risk of each pattern; none where the engine refuses the fabric."""
    hosts = np.flatnonzero(fabric.is_host_port).astype(np.uint32)
    mix = JobMix((make_job("all", hosts.tolist()),))
    try:
        routes = load_engine(engine).route(fabric, mix, Options())
    except Unserved:
        return {}
    walk = TableWalk(fabric, routes)
    drawn = walk.permutations(hosts, random_permutations(hosts, DRAWS, seed))
    risk = (
        float(walk.permutations(hosts, shifts(hosts)).max()),
        float(np.median(drawn)),
        float(walk.all_to_all(hosts)),
    )
    return dict(zip(PATTERNS, risk, strict=True))


def _cell(draws: Sequence[float]) -> str:
    return f"{median_of(draws).value:g}" if draws else "refused"
