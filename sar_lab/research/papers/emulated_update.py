"""SAR, Fig. 9, emulated: a stream over real packets while its routes change as in the recorded
update (`recorded_update.py`).

The stream is one message for as long as it takes; a thread waits for it, and this one reads the
counters of the sender's switch and writes routes, since netlink sockets serve one thread.

**Weak spot:** a host has one address, where the testbed's have two LIDs: a rank that moves is a
route that changes. No queue pair drains, and no packet waits at a switch when the route changes,
since hosts send no faster than a cable.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.routing.routes import Routes
from sar_lab.emulate import WHAT_IT_IS_NOT as WHAT_IT_IS_NOT  # rows.toml names it
from sar_lab.emulate.emulation import Emulated
from sar_lab.emulate.idle import counts
from sar_lab.emulate.live.losses import losses_of
from sar_lab.emulate.namespaces import EmulatedFabric, ideal_seconds, require_emulation
from sar_lab.emulate.phases import Program
from sar_lab.emulate.runner import JobToRun, Run, ranks_program, run_jobs
from sar_lab.research.papers.claims import NEAR, Claim, order
from sar_lab.research.papers.emulated import machine
from sar_lab.research.papers.measured import measured
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.sar_fig6 import RECEIVER, SENDER
from sar_lab.research.papers.sar_fig9 import EVERY
from sar_lab.research.recorded_update import TESTBED, recorded_update

SAID = quotes("sar-fig9")
RATE = 2e7
"""Bits a second of a cable: a sample of `EVERY` seconds has a hundred packets."""
STAY = 3.0
"""Seconds on each path."""
BEFORE, HIGH, AFTER = "before", "high", "after"
TABLES = {BEFORE: (BEFORE, 0), HIGH: (BEFORE, 1), AFTER: (AFTER, 0)}
"""Path → tables of the record and LID offset, in the order in which the stream takes them."""
NEAR_CHANGE = 2
"""Samples beside a change that count to neither path."""


@dataclass(frozen=True)
class EmulatedStream:
    """One stream."""

    seconds: list[float]
    """When each sample ends."""
    mbit: list[tuple[float, float]]
    """What each of the two cables carried in it."""
    changes: list[float]
    """When routes to the second and the third path were written."""
    idle: float
    """The idle share of the processors."""
    dropped: int
    sent_again: int
    machine: str
    date: str
    lost: str
    """Why the run gave no result."""

    @property
    def counted(self) -> bool:
        return not self.lost and counts(self.idle)

    @property
    def total(self) -> NDArray[np.float64]:
        found: NDArray[np.float64] = np.array(self.mbit).sum(axis=1)
        return found

    def cables(self) -> list[set[int]]:
        """The cables that carry more than a tenth of what is sent on each path."""
        ends = [0.0, *self.changes, self.seconds[-1]]
        loads, at = np.array(self.mbit), np.array(self.seconds)
        apart, found = NEAR_CHANGE * EVERY, []
        for begin, end in pairwise(ends):
            sums = loads[(at > begin + apart) & (at < end - apart)].sum(axis=0)
            found.append({cable for cable in (0, 1) if sums[cable] > 0.1 * sums.sum()})
        return found

    @property
    def lowest(self) -> float:
        """The lowest sample as a share of the median."""
        return float(self.total.min() / np.median(self.total))


def sar_fig9_emulated(seeds: Sequence[int]) -> Outcome:
    """Each seed is another run of the same."""
    draws = [stream(seed, STAY, RATE) for seed in seeds]
    some = [draw for draw in draws if draw.counted]
    rows = [
        [str(n), *_cells(draw), f"{draw.idle:.2f}", f"{draw.machine}, {draw.date}"]
        for n, draw in enumerate(draws)
    ]
    head = ["run", "cables", "lowest sample", "packets lost", "sent again", "idle", "machine, date"]
    return Outcome(
        claims_of(some),
        [ResultTable(head, rows)],
        draw=(lambda figure: _draw(figure, some[0])) if some else None,
    )


def claims_of(draws: Sequence[EmulatedStream]) -> list[Claim]:
    """What the text says of the figure, of the runs that count: at each of them."""
    moves = [
        len(before) == len(during) == 1 and before != during
        for before, during, _ in (draw.cables() for draw in draws)
    ]
    lowest = [draw.lowest for draw in draws]
    return [
        order("the traffic is on one cable before the update, and on the other during it",
              all(moves) if draws else None, f"in {sum(moves)} of {len(draws)} runs",
              said=SAID["moves"]),
        order("without draining: the lowest sample within 20 % of the median",
              min(lowest) >= 1 - NEAR if draws else None,
              ", ".join(f"{each:.0%}" for each in lowest) or "not measured",
              said=SAID["throughput"]),
    ]  # fmt: skip


def _cells(draw: EmulatedStream) -> list[str]:
    if not draw.counted:
        return [draw.lost or "not counted", "", "", ""]
    cables = [" and ".join(str(cable + 1) for cable in sorted(each)) for each in draw.cables()]
    lost = [f"{draw.dropped:,}", f"{draw.sent_again:,}"]
    return [", ".join(cables), f"{draw.lowest:.0%} of the median", *lost]


@measured
def stream(seed: int, stay: float, rate: float) -> EmulatedStream:
    """A stream for `stay` seconds on each path; the seed only numbers the run."""
    require_emulation()
    fabric = load_fabric(TESTBED)
    mix = JobMix((make_job("fig9", [SENDER, RECEIVER]),))
    size = int(3 * stay / ideal_seconds(1, rate))
    with ExitStack() as stack:
        binary = stack.enter_context(ranks_program())
        network = stack.enter_context(EmulatedFabric(fabric, rate))
        site = Emulated(network, mix)
        tables = {name: _routes(fabric, *of) for name, of in TABLES.items()}
        site.install(tables[BEFORE])
        before = losses_of(network)
        job = JobToRun(
            tuple(network.hosts[t].path for t in (SENDER, RECEIVER)),
            tuple(map(network.address, (SENDER, RECEIVER))),
            Program(1, ({(0, 1): size},)),
        )
        pool = stack.enter_context(ThreadPoolExecutor(1))
        run = pool.submit(run_jobs, binary, [job], 20 + 12 * stay)
        looks, changes = _followed(site, tables, stay, run.done)
        found: Run = run.result()
        after = losses_of(network).minus(before)
    seconds, mbit = _samples(looks, stay)
    return EmulatedStream(
        seconds, mbit, changes, found.idle, after.dropped, after.sent_again,
        machine(), time.strftime("%Y-%m-%d"), found.lost,
    )  # fmt: skip


def _routes(fabric: Fabric, when: str, offset: int) -> Routes:
    table = np.array(recorded_update().tables[when][offset], np.uint8)
    return Routes(when, fabric.digest, table.T[None].copy())


Look = tuple[float, int, int]
"""When, and the bytes that each cable has carried by then."""


def _followed(
    site: Emulated, tables: dict[str, Routes], stay: float, ended: Callable[[], bool]
) -> tuple[list[Look], list[float]]:
    """Looks at the counters until the stream has ended, and writes the tables meanwhile; when, in
    seconds since the first look at which anything was sent."""
    switch = site.network.switches[site.network.fabric.terminal_switch[SENDER]]
    ports = [f"p{port}" for port in _cable_ports(site.network.fabric)]
    looks: list[Look] = []
    changes: list[float] = []
    waiting, began = [tables[HIGH], tables[AFTER]], 0.0
    few = site.network.rate / 8 * EVERY / 2
    while not ended():
        sent, now = switch.sent(), time.monotonic()
        looks.append((now, sent[ports[0]], sent[ports[1]]))
        if not began and sum(looks[-1][1:]) - sum(looks[0][1:]) > few:
            began = now
            del looks[:-1]
        if began and waiting and now > began + stay * (len(changes) + 1):
            site.install(waiting.pop(0))
            changes.append(time.monotonic() - began)
        time.sleep(max(0.0, EVERY - (time.monotonic() - now)))
    return looks, changes


def _cable_ports(fabric: Fabric) -> list[int]:
    from_sender = fabric.channel_source == fabric.terminal_switch[SENDER]
    return sorted(fabric.channel_port[from_sender].tolist())


def _samples(looks: Sequence[Look], stay: float) -> tuple[list[float], list[tuple[float, float]]]:
    """When each sample ends, and what the cables carried in it, Mbit/s, until shortly before a
    stream that nothing slowed ends."""
    seconds, mbit = [], []
    for (a, *before), (b, *after) in pairwise(looks):
        if b - looks[0][0] < 3 * stay - NEAR_CHANGE * EVERY:
            seconds.append(b - looks[0][0])
            one, two = (8e-6 * (y - x) / (b - a) for x, y in zip(before, after, strict=True))
            mbit.append((one, two))
    return seconds, mbit


def _draw(figure: Figure, draw: EmulatedStream) -> None:
    axes = figure.subplots()
    for cable, colour in enumerate(("#4477aa", "#ee6677")):
        load = [each[cable] for each in draw.mbit]
        axes.fill_between(draw.seconds, load, step="pre", color=colour, lw=0, alpha=0.7,
                          label=f"cable {cable + 1}")  # fmt: skip
    for at in draw.changes:
        axes.axvline(at, color="black", lw=0.8, ls=":")
    axes.set(xlabel="s (dotted: routes are written)", ylabel="Mbit/s",
             ylim=(0, 1.3 * RATE / 1e6))  # fmt: skip
    axes.legend(loc="upper center", ncols=2, fontsize="small")
