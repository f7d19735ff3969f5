"""Routing keys for jobs that send in phases, beside sar-plus for jobs that send all at once.

Eight jobs share a tree. Some repeat an all-to-all with all messages under way; the others step
through a grid, with a barrier after each step. sar-plus routes LID offset 0 for all of them. With
keys, each step has an offset of its own, whose shift is chosen for the flows that run at that
moment (NRK of routing-keys-2017), those on offset 0 included. A request takes time: the second part
asks how long a step must send before its key pays for it, the third how many offsets are needed.
The model is the fluid one: it has no time scale of its own, so only the ratio of request to step
matters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing import Options, load_engine
from sar_agent.routing.keys import KeyTree, key_tree
from sar_lab.research.papers.claims import Claim, more, value
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.outcome import Axes, Figure, Outcome, ResultTable, median_table
from sar_lab.research.papers.pictures import band, legend
from sar_lab.research.statistics import Estimate, median_of
from sar_lab.research.trace.adaptive import AdaptiveRouting
from sar_lab.research.trace.groups import steps_of
from sar_lab.research.trace.parse import FIRST_LINE, read_trace
from sar_lab.research.trace.phase_keys import phase_keys
from sar_lab.research.trace.play_trace import KeySource, ProgramTime, play_trace
from sar_lab.research.trace.rank_placement import place_ranks
from sar_lab.research.trace.units import size_text, time_text

SPEC = "xgft:3;4,4,6;1,4,4"
JOBS, GRID = 8, (3, 2, 2)
RANKS = 12
STEP_BYTES = 256 * 2.0**10
ROUNDS = 2
"""Passes over the grid's six steps."""
PHASED = (0, 2, 4, 6, 8)
"""Jobs in phases; the others send all to all."""
BOTH = "sar-plus and keys"
ROWS = ("D-mod-k", "sar-plus", "NRK", BOTH, "Conga-like")
COLOURS = dict(zip(ROWS, ("#999999", "#4477aa", "#ccbb44", "#ee6677", "#228833"), strict=True))
KEYED = ("NRK", BOTH)
REQUESTS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Time of a request, in times of a step alone."""
EVEN = 4
"""Jobs in phases in the second part."""
LMCS = (1, 2, 3, 4)
"""2^LMC offsets, of which two are no keys' (routes for jobs, and the shelter)."""
MEASURED = 0.856
"""Seconds of a request for 21 hosts, from the client to routes in force, beside OpenSM on ibsim
(1,728 hosts, November 2026)."""
NEAR = 0.2


class Slowdowns(NamedTuple):
    """Run times over those on a network that only hosts' links limit, requests included."""

    phased: list[float]
    at_once: list[float]

    @property
    def jobs(self) -> list[float]:
        """Both kinds."""
        return [*self.phased, *self.at_once]


Shares = dict[int, dict[str, list[Slowdowns]]]
"""Jobs in phases → row → a run for each seed."""


def keys_beside_sar_plus(seeds: Sequence[int]) -> Outcome:
    """All three parts."""
    shares: Shares = {
        n: {row: [play(n, row, seed) for seed in seeds] for row in ROWS} for n in PHASED
    }
    waits = {
        r: [float(np.mean(play(EVEN, BOTH, seed, request=r).phased)) for seed in seeds]
        for r in REQUESTS
    }
    without = [float(np.mean(each.phased)) for each in shares[EVEN]["sar-plus"]]
    offsets = {
        lmc: [float(np.mean(play(JOBS, BOTH, s, keys=2**lmc - 2).phased)) for s in seeds]
        for lmc in LMCS
    }
    even = [break_even([waits[r][i] for r in REQUESTS], without[i]) for i in range(len(without))]
    found = median_of([e for e in even if e is not None] or [0.0])

    return Outcome(
        claims_of(shares, waits, without, even, offsets),
        words={"step": size_text(STEP_BYTES)},
        tables=_tables(shares, waits, without, offsets, found),
        draw=lambda figure: _draw(figure, shares, waits, without, offsets, found, len(seeds)),
    )


@cache
def _network() -> tuple[Fabric, KeyTree]:
    fabric = xgft_fabric(SPEC)
    return fabric, key_tree(fabric)


def programs(phased: int, seed: int, rate: float, scale: float = 1.0) -> str:
    """The trace: `phased` jobs step through the grid, each in an order of its own, the others send
    all to all; all begin within one step. `scale` multiplies all messages."""
    random = np.random.default_rng(seed)
    step = STEP_BYTES * scale
    lines = [FIRST_LINE]
    for job in range(JOBS):
        names = random.permutation(steps_of(GRID))
        start = random.random() * step * 8e-9 / rate
        lines += [f"job {job + 1} {RANKS}", f"start {time_text(start)}"]
        if job < phased:
            lines += [f"grid {'x'.join(map(str, GRID))}", f"repeat {ROUNDS}"]
            for name in names:
                lines += [f"request {name}", f"step {name} {size_text(step)}", "barrier", "done"]
        else:
            part = len(names) * step / (RANKS - 1)
            lines += [f"repeat {ROUNDS}", f"alltoall {size_text(part)}", "barrier"]
        lines.append("end")
    return "\n".join(lines) + "\n"


@measured
def play(
    phased: int, row: str, seed: int, *, request: float = 0.0, keys: int = JOBS, scale: float = 1.0
) -> Slowdowns:
    """One run. `request` is in times of a step alone; the first `keys` jobs have keys."""
    fabric, tree = _network()
    rate = float(fabric.terminal_rate.min())
    trace = read_trace(programs(phased, seed, rate, scale))
    placement = place_ranks(fabric, trace, "random", seed)
    if row == "Conga-like":
        times = play_trace(fabric, AdaptiveRouting(seed=seed), trace, placement)
        return _slowdowns(times, phased)
    mix = JobMix.of(make_job(p.job, t) for p, t in zip(trace.programs, placement, strict=True))
    engine = "dmodk" if row in ("D-mod-k", "NRK") else "sar-plus"
    routes = load_engine(engine).route(fabric, mix, Options())
    source = _some_keys(phase_keys(tree, "nrk"), keys) if row in KEYED else None
    seconds = request * STEP_BYTES * scale * 8e-9 / rate
    times = play_trace(fabric, routes, trace, placement, keys=source, request_seconds=seconds)
    return _slowdowns(times, phased)


def _some_keys(answer: KeySource, jobs: int) -> KeySource:
    """Keys for the first `jobs` jobs, which leaves the others on offset 0."""
    return lambda asked: answer(asked) if int(asked.job) <= jobs else None


def _slowdowns(times: Sequence[ProgramTime], phased: int) -> Slowdowns:
    slow = [float(each.seconds / each.alone.sum()) for each in times]
    return Slowdowns(slow[:phased], slow[phased:])


def break_even(with_keys: Sequence[float], without: float) -> float | None:
    """The request time, in steps, at which both are equal, by linear interpolation over `REQUESTS`;
    None where keys are better, or worse, at all of them."""
    over = np.array(with_keys) - without
    after = int(np.argmax(over > 0))
    if after == 0:
        return None
    low, high = over[after - 1], over[after]
    return float(np.interp(0.0, (low, high), REQUESTS[after - 1 : after + 1]))


def claims_of(
    shares: Shares,
    waits: dict[float, list[float]],
    without: list[float],
    even: Sequence[float | None],
    offsets: dict[int, list[float]],
) -> list[Claim]:
    """What the study states, judged by these numbers alone."""
    claims = []
    for n, rows in shares.items():
        mean = {row: [float(np.mean(each.jobs)) for each in runs] for row, runs in rows.items()}
        says = f"{n} of {JOBS} jobs in phases"
        if n < JOBS:
            claims.append(more(f"{says}: {BOTH} before NRK", mean["NRK"], mean[BOTH]))
        if n > 0:
            claims.append(more(f"{says}: {BOTH} before sar-plus", mean["sar-plus"], mean[BOTH]))
        claims.append(more(f"{says}: {BOTH} before Conga-like", mean["Conga-like"], mean[BOTH]))
    known = [each for each in even if each is not None]
    saved = [a - b for a, b in zip(without, waits[0.0], strict=True)]
    return [
        *claims,
        more("a key that takes a quarter of its step pays", without, waits[0.25]),
        more("a key that takes four times its step does not pay", waits[4.0], without),
        value(
            "break-even, in steps: what the key saves of the slowdown",
            float(np.median(saved)),
            float(np.median(known)) if len(known) == len(even) else 0.0,
            NEAR,
        ),
        more("LMC 4 before LMC 2 where eight jobs are in phases", offsets[2], offsets[4]),
    ]


def _tables(
    shares: Shares,
    waits: dict[float, list[float]],
    without: list[float],
    offsets: dict[int, list[float]],
    found: Estimate,
) -> list[ResultTable]:
    def of_jobs(title: str, of: Callable[[Slowdowns], float]) -> ResultTable:
        return median_table(
            f"{title}, jobs in phases",
            {str(n): shares[n] for n in PHASED},
            {row: row for row in ROWS},
            lambda row, by_row: [of(each) for each in by_row[row]],
        )

    pays = [seconds_text(r / found.value) for r in (1e-6, 1e-3, MEASURED)]
    asked = [without, *(waits[r] for r in REQUESTS)]
    return [
        of_jobs("mean job", lambda each: float(np.mean(each.jobs))),
        of_jobs("slowest job", lambda each: max(each.jobs)),
        ResultTable(
            ["a request takes, in steps", "no keys", *(f"{r:g}" for r in REQUESTS)],
            [["mean job in phases", *(median_of(each).words() for each in asked)]],
        ),
        ResultTable(
            ["a request takes", "1 µs", "1 ms", f"{MEASURED:g} s (measured)"],
            [["a key pays from steps of", *pays]],
        ),
        ResultTable(
            ["LMC", *map(str, LMCS)],
            [
                ["jobs with keys", *(str(min(JOBS, 2**lmc - 2)) for lmc in LMCS)],
                ["mean job", *(median_of(offsets[lmc]).words() for lmc in LMCS)],
            ],
        ),
    ]


def seconds_text(seconds: float) -> str:
    """Two digits with a unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            return f"{seconds * factor:.2g} {unit}"
    raise AssertionError


def _draw(
    figure: Figure,
    shares: Shares,
    waits: dict[float, list[float]],
    without: list[float],
    offsets: dict[int, list[float]],
    found: Estimate,
    seeds: int,
) -> None:
    (mean, worst), (even, lmc) = figure.subplots(2, 2)
    for axes, title, of in (
        (mean, "mean job", lambda each: float(np.mean(each.jobs))),
        (worst, "slowest job", lambda each: max(each.jobs)),
    ):
        for row in ROWS:
            _line(axes, {n: [of(e) for e in shares[n][row]] for n in PHASED}, row, COLOURS[row])
        axes.set(
            title=title, xlabel=f"jobs in phases, of {JOBS}", ylabel="slowdown", ylim=(0.9, None)
        )
        axes.axhline(1, color="black", linewidth=0.8)
    _line(even, waits, BOTH, COLOURS[BOTH])
    _line(even, dict.fromkeys(REQUESTS, without), "sar-plus", COLOURS["sar-plus"])
    even.axvline(found.value, color="black", linestyle=":", linewidth=1)
    even.axvspan(found.low, found.high, color="black", alpha=0.1)
    even.set(
        title=f"{EVEN} jobs in phases; a key pays left of {found.words()}",
        xlabel="time of a request / time of its step alone",
        ylabel="slowdown of a job in phases",
    )
    _line(lmc, {2**k - 2: offsets[k] for k in LMCS}, BOTH, COLOURS[BOTH])
    lmc.set(
        title="all jobs in phases, fewer keys than jobs",
        xlabel="keys that fit beside other offsets (LMC 1 to 4)",
        ylabel="slowdown of a job in phases",
    )
    lmc.set_xticks([2**k - 2 for k in LMCS])
    legend(figure, "outside lower center", ncols=len(ROWS))
    figure.suptitle(
        f"{SPEC}: n = {seeds} placements; lines are medians, bands their 95 % intervals", fontsize=9
    )


def _line(
    axes: Axes, by_x: Mapping[int, list[float]] | Mapping[float, list[float]], row: str, colour: str
) -> None:
    found = [median_of(draws) for draws in by_x.values()]
    band(axes, list(by_x), found, marker=".", label=row, color=colour)
