"""SAR, Fig. 8: an all-to-all of 28 hosts on ten leaf switches of one island of Taurus.

The paper started SAR "for the whole system" on a machine in production, so here SAR knows all jobs
that run, and the others send, too. What they send and how large they are is not printed: each of
them does the same all-to-all, and there are two limits of sizes, `LIMITS`. The same placements
without the others show how much that matters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from sar_agent.demand.endpoints import multi_switch_mix
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import Job, JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing import Engine, Options
from sar_lab.fluid import PATTERNS, job_times
from sar_lab.mixes.synthetic_histories import synthetic_history
from sar_lab.opensm_tables import lab_engine
from sar_lab.replay.chain import CachedEngine
from sar_lab.replay.samples import Samples, samples_of
from sar_lab.research.papers.claims import NEAR, Claim, times_as_much, value
from sar_lab.research.papers.compared import claim, compared
from sar_lab.research.papers.measured import by_key, measured
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable, median_table
from sar_lab.research.papers.pictures import COLOURS, LABELS
from sar_lab.research.papers.published import quotes
from sar_lab.research.statistics import F64

SAID = quotes("sar-fig8")
HOSTS, LEAVES = 28, 10
_RATIO = 1 + SAID["dfsssp"].number / 100
_LESS = [1 - percent / 100 for percent in SAID["sar"].numbers]
PRINTED = (("DFSSSP", "fat-tree", _RATIO, "dfsssp"), ("DFSSSP", "SAR", 1 / _LESS[0], "sar"),
           ("fat-tree", "SAR", 1 / _LESS[1], "sar"))  # fmt: skip
"""The slower, the faster, how many times as long it takes, and the quote."""
ENGINES = {e: LABELS[e] for e in ("opensm-ftree", "opensm-dfsssp", "sar", "sar-plus")}
ORDER = "shift-free"
"""Open MPI's fixed rule sends blocks from 3,000 bytes in pairs, one after the other."""
LIMITS = SMALL, ALL = 64, 612
"""The most nodes of a job of the others: what sar-table1 implies is that most are small; the
stand-in's own are up to an island. Claims are judged for the first; for both they are printed."""
ALONE, SILENT, BUSY = "no other job", "others are routed, silent", "others send, too"
SETUPS = ALONE, SILENT, BUSY
BUSY_SEEDS = {SMALL: 40, ALL: 6}
"""Placements beside other jobs that send; large ones take 25 s of a core each."""
STATES = 10
"""Moments of a history, one each half day."""
Drawn = dict[tuple[str, str], list[float]]
"""(set-up, engine) → the time of each placement."""
Times = dict[str, list[float]]
"""Label of an engine → the time of each placement."""


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


@cache
def taurus() -> Fabric:
    """The stand-in."""
    return load_fabric("standin:taurus")


@cache
def _history(seed: int, largest: int) -> Samples:
    spec = f"synthetic:taurus,seed={seed},days={STATES // 2},largest={largest}"
    return samples_of(taurus(), synthetic_history(spec), 12 * 3600.0)


@cache
def _engine(name: str) -> Engine:
    """OpenSM's tables do not depend on jobs: they are read once."""
    return CachedEngine(lab_engine(name)) if name.startswith("opensm-") else lab_engine(name)


def whole_mix(seed: int, largest: int) -> tuple[JobMix, int]:
    """What runs at a moment of a synthetic history beside the job of a seed, and the place of that
    job: others leave it its hosts, and are dropped where fewer than two are left."""
    job = scattered_job(taurus(), seed)
    moments = _history(1 + seed // STATES, largest)
    left = (
        make_job(f"other{other.id}", np.setdiff1d(other.terminals, job.terminals))
        for other in moments.mix(seed % moments.states).jobs
    )
    others = multi_switch_mix(taurus(), (each for each in left if len(each.terminals) > 1))
    mix = JobMix.of((*others.jobs, job))
    return mix, mix.jobs.index(job)


def sar_fig8(seeds: Sequence[int]) -> Outcome:
    """Each seed is another placement of the job, and another moment of the history."""
    by_limit = {limit: by_key([times(seed, limit) for seed in seeds]) for limit in LIMITS}
    small, large = (_of(by_limit[limit], BUSY) for limit in LIMITS)
    return Outcome(
        _claims(small),
        tables=[_among_draws(by_limit), *(_times(by_limit[limit], limit) for limit in LIMITS)],
        as_printed={f"others of up to {ALL} nodes": _claims(large)},
        draw=lambda figure: _draw(figure, by_limit),
        words={"busy": len(large["SAR"])},
    )


@measured
def times(seed: int, largest: int) -> dict[tuple[str, str], float]:
    """(set-up, engine) → the time of the job."""
    whole, at = whole_mix(seed, largest)
    alone = JobMix(whole.jobs[at : at + 1])
    found: dict[tuple[str, str], float] = {}
    for name in ENGINES:
        routes = {mix: _engine(name).route(taurus(), mix, Options()) for mix in (alone, whole)}
        for setup, known, sends in ((ALONE, alone, alone), (SILENT, whole, alone),
                                    (BUSY, whole, whole)):  # fmt: skip
            if setup != BUSY or seed < BUSY_SEEDS[largest]:
                time = job_times(taurus(), sends, routes[known], PATTERNS[ORDER]).time
                found[setup, name] = float(time[at if sends is whole else 0])
    return found


def _of(drawn: Drawn, setup: str) -> Times:
    return {label: drawn[setup, name] for name, label in ENGINES.items()}


def _claims(times: Times) -> list[Claim]:
    added = {label: float(np.mean(each)) - 1 for label, each in times.items()}
    return [
        *(claim for each in PRINTED for claim in _slower(times, *each)),
        value("what contention adds: SAR, share of fat-tree", SAID["halves"],
              added["SAR"] / added["fat-tree"], NEAR),
    ]  # fmt: skip


def _slower(times: Times, slow: str, fast: str, printed: float, quote: str) -> list[Claim]:
    """The order, by pairs of the same placement, and how large it is."""
    found = times_as_much(times[slow], times[fast])
    of_seeds = compared({name: [draws] for name, draws in times.items()})
    says = f"one after the other: {slow} slower than {fast}"
    return [
        claim(of_seeds[slow] > of_seeds[fast], says, said=SAID[quote],
              ours=f"{found.words()} times as long"),
        value(f"{slow} against {fast}: times as long", printed, found.value, NEAR,
              said=SAID[quote], ratio=True),
    ]  # fmt: skip


def _ratios(times: Times, slow: str, fast: str) -> F64:
    found: F64 = np.array(times[slow]) / np.array(times[fast])
    return found


def _among_draws(by_limit: Mapping[int, Drawn]) -> ResultTable:
    """The printed value is of one placement, so where it is among single ones says more than its
    distance from their mean."""
    rows = []
    for limit, setup in [(limit, setup) for limit in LIMITS for setup in SETUPS]:
        times = _of(by_limit[limit], setup)
        cells = [f"{limit}, {setup}", str(len(times["SAR"]))]
        for slow, fast, printed, _ in PRINTED:
            of = _ratios(times, slow, fast)
            low, middle, high = np.quantile(of, [0.05, 0.5, 0.95])
            cells.append(f"{middle:.2f} [{low:.2f} … {high:.2f}], {np.mean(of <= printed):.0%}")
        rows.append(cells)
    names = [f"{slow} over {fast} ({more:.2f})" for slow, fast, more, _ in PRINTED]
    head = ["largest of the others; set-up", "n", *names]
    return ResultTable(head, rows)


def _times(drawn: Drawn, limit: int) -> ResultTable:
    return median_table(
        f"time, others of up to {limit} nodes",
        {setup: setup for setup in SETUPS},
        {label: name for name, label in ENGINES.items()},
        lambda name, setup: drawn[setup, name],
    )


def _draw(figure: Figure, by_limit: Mapping[int, Drawn]) -> None:
    """Each dot is one placement, as the published value is."""
    panels = figure.subplots(1, len(PRINTED), sharey=True)
    places = [(limit, setup) for limit in LIMITS for setup in SETUPS]
    for axes, (slow, fast, printed, _) in zip(panels, PRINTED, strict=True):
        for at, (limit, setup) in enumerate(places):
            of = _ratios(_of(by_limit[limit], setup), slow, fast)
            spread = np.linspace(-0.25, 0.25, len(of)) if len(of) > 1 else np.zeros(1)
            colour = COLOURS["sar" if (limit, setup) == (SMALL, BUSY) else "opensm-ftree"]
            axes.plot(of, at + spread, ".", ms=4, color=colour)
            axes.plot([np.median(of)] * 2, [at - 0.4, at + 0.4], color="black", lw=1.2)
        axes.axvline(printed, color="black", ls="--", lw=1.0)
        axes.plot(printed, places.index((SMALL, BUSY)), "kD", ms=8, mfc="none")
        axes.set(title=f"{slow} over {fast}", xlabel="times as long")
        axes.axvline(1.0, color="grey", lw=0.8)
    words = [f"{setup}\n≤ {limit} nodes, n = {len(by_limit[limit][setup, 'sar'])}"
             for limit, setup in places]  # fmt: skip
    panels[0].set_yticks(range(len(places)), words, fontsize="small")
    panels[0].invert_yaxis()
    figure.suptitle("dots: placements; bars: medians; dashed: published, one placement",
                    fontsize="medium")  # fmt: skip
