"""SAR, Fig. 9: the load of two cables while a broadcast's path migrates between them.

The tables and the times of all events are those of a recorded update (`sar-fig6`); ibsim carries no
data, so messages are simulated: packets measure how long one takes, and what a change of the path
between two of them costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.routing.routes import Routes
from sar_lab.fluid.flow_paths import routed_links, with_rates
from sar_lab.fluid.flow_steps import flows_of_steps
from sar_lab.research.packets import packet_times
from sar_lab.research.papers.claims import order
from sar_lab.research.papers.compared import PLAIN, Compared, claim
from sar_lab.research.papers.outcome import Figure, Outcome, ResultTable
from sar_lab.research.papers.published import quotes
from sar_lab.research.papers.sar_fig6 import RECEIVER, SENDER, ranks
from sar_lab.research.recorded_update import TESTBED, path_channels, recorded_update

SAID = quotes("sar-fig9")
GIGABIT = 32.0
"""Data rate of QDR, 4 lanes of 10 Gbit/s with 8 of 10 bits."""
HOST_GIGABIT = 2 * GIGABIT
"""Hosts' FDR is faster, 54.5; a multiple keeps the clock of packets exact."""
MESSAGE = 2.0**20
EVERY = 0.07
"""Seconds between two looks at the counters."""
DELAY = 10.0
"""Seconds that the paper adds between unpath and repath."""
LEAD, TAIL = 7.0, 7.0
"""Seconds before and after the update."""
MEASURED = 40
"""Messages in packets: enough for a steady stream."""


@dataclass(frozen=True)
class SentSeries:
    """Bytes over each of the two cables in each sample."""

    start: NDArray[np.float64]
    """float64[N], seconds after the update began."""
    load: NDArray[np.float64]
    """float64[2, N], Gbit/s."""

    @property
    def total(self) -> NDArray[np.float64]:
        found: NDArray[np.float64] = self.load.sum(axis=0)
        return found


def sar_fig9(seeds: Sequence[int]) -> Outcome:
    """The stream beside the recorded update, with and without a pause while queue pairs drain."""
    moves = _moves()
    plain, drained = series(drain=False), series(drain=True)
    lowest = plain.total.min() / np.median(plain.total)
    before, during, after = (_cable_of(plain, *span) for span in _spans(moves))
    each, change = message_seconds(), changed_seconds()
    median = float(np.median(drained.total))
    claims = [
        order("the traffic is on one cable before the update, and on the other during it",
              len(before) == len(during) == 1 and during != before,
              f"cable {_words(before)}, cable {_words(during)}", said=SAID["moves"]),
        claim(Compared([drained.total.min() / median], PLAIN).within(0.2, 1.0),
              "with draining: the lowest sample within 20 % of the median",
              ours=f"{drained.total.min() / median:.0%}", said=SAID["throughput"]),
    ]  # fmt: skip
    rows = [
        ["a message on one path", f"{1e6 * each:.1f} µs"],
        ["a message right after a change of the path", f"{1e6 * change:.1f} µs"],
        ["samples with highLIDs, published (400 to 560)", "160"],
        ["samples with highLIDs, ours", f"{int((moves[1][0] - moves[0][0]) / EVERY)}"],
        ["lowest sample, without draining", f"{lowest:.1%} of the median"],
        [
            "lowest sample, with the recorded pauses",
            f"{drained.total.min() / np.median(drained.total):.1%} of the median",
        ],
        ["those pauses", ", ".join(f"{1e3 * (b - a):.0f} ms" for a, b in moves)],
    ]
    return Outcome(
        claims,
        words={"cable": _words(after)},
        tables=[ResultTable(["", "value"], rows)],
        draw=lambda figure: _draw(figure, plain, drained, moves),
    )


def _words(cables: set[int]) -> str:
    return " and ".join(str(cable + 1) for cable in sorted(cables))


def _moves() -> list[tuple[float, float]]:
    """When the sending rank leaves and returns to baseLIDs: beginning and end, with `DELAY`."""
    update, sender = recorded_update(), ranks(recorded_update())[0]
    found = []
    for offset, late in ((1, 0.0), (0, DELAY)):
        both = [update.times("subscriber", e, offset=offset, id=sender)[0] + late
                for e in ("move", "moved")]  # fmt: skip
        found.append((both[0], both[1]))
    return found


def _spans(moves: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    (away, on_high), (back, on_base) = moves
    return [(-LEAD, away - EVERY), (on_high + EVERY, back - EVERY), (on_base + EVERY, back + TAIL)]


def _cable_of(found: SentSeries, since: float, until: float) -> set[int]:
    inside = (found.start >= since) & (found.start + EVERY <= until)
    return set(np.flatnonzero(found.load[:, inside].sum(axis=1)).tolist())


def series(*, drain: bool) -> SentSeries:
    """The messages one after the other, each over the path of its LIDs when it starts."""
    update, (away, back) = recorded_update(), _moves()
    fabric = _fabric()
    cable = {
        key: int(fabric.channel_port[path_channels(fabric, table, SENDER, RECEIVER)[0]]) - 3
        for key, table in (
            ("before", update.tables["before"][0]),
            ("high", update.tables["before"][1]),
            ("after", update.tables["after"][0]),
        )
    }
    begins = np.arange(-LEAD, back[1] + TAIL, EVERY)
    sent = np.zeros((2, len(begins)))
    now, last = -LEAD, cable["before"]
    while now < begins[-1]:
        key = "before" if now < away[0] else "high" if now < back[0] else "after"
        end = now + (message_seconds() if cable[key] == last else changed_seconds())
        for pause in (away, back) if drain else ():
            if pause[0] <= now < pause[1]:
                end += pause[1] - now
        sent[cable[key], int((end + LEAD) / EVERY)] += 8e-9 * MESSAGE / EVERY
        now, last = end, cable[key]
    # The first and the last sample are not whole.
    return SentSeries(begins[1:-2], sent[:, 1:-2])


@cache
def message_seconds() -> float:
    """Seconds from one message's arrival to the next one's, on one path."""
    return float(np.diff(_arrivals(("before", "before"))[1:]).mean())


@cache
def changed_seconds() -> float:
    """The same where the path changes between the two."""
    ends = _arrivals(("before", "high"))
    return float(ends[MEASURED] - ends[MEASURED - 1])


def _arrivals(tables: tuple[str, str]) -> NDArray[np.float64]:
    """float64[2 MEASURED]: when messages arrive of which the second half takes another table."""
    fabric, update = _fabric(), recorded_update()
    found: list[float] = []
    for name in tables:
        table = update.tables["before"][0 if name == "before" else 1]
        egress = np.array(table, np.uint8).T[None].copy()
        routes = Routes(name, fabric.digest, egress)
        messages = [np.array([[SENDER, RECEIVER]], np.int32)] * MEASURED
        flows = flows_of_steps(messages, 8e-9 * MESSAGE)
        ends = packet_times(fabric, routed_links(fabric, routes, flows), flows).end
        found += (ends + (found[-1] if found else 0.0)).tolist()
    return np.array(found)


@cache
def _fabric() -> Fabric:
    return with_rates(load_fabric(TESTBED), GIGABIT, HOST_GIGABIT)


def _draw(
    figure: Figure, plain: SentSeries, drained: SentSeries, moves: Sequence[tuple[float, float]]
) -> None:
    """Above, which cable carries the messages; below, what the verdict is about: the throughput of
    both around each move."""
    above, *below = figure.subplots(1, 3, width_ratios=(2, 1, 1))
    for cable, colour in enumerate(("#4477aa", "#ee6677")):
        above.fill_between(plain.start, plain.load[cable], step="post", color=colour, lw=0,
                           alpha=0.7, label=f"cable {cable + 1}")  # fmt: skip
    above.axvspan(moves[0][0], moves[1][1], ymin=0.9, color="#888888", alpha=0.4, lw=0,
                  label="on highLIDs")  # fmt: skip
    above.set(title="which cable carries the messages", xlabel="s after the update began",
              ylabel="Gbit/s", ylim=(0, 1.25 * GIGABIT))  # fmt: skip
    above.legend(loc="upper center", ncols=3, fontsize="small")
    for axes, (begin, end), title in zip(below, moves, ("leaves", "returns"), strict=True):
        near = (drained.start > begin - 0.6) & (drained.start < end + 0.6)
        for found, style, name in ((plain, "--", "without draining"), (drained, "-", "drains")):
            axes.step(1e3 * (found.start[near] - begin), found.total[near], style, where="post",
                      color="black", lw=1.2, label=name)  # fmt: skip
        axes.set(title=f"throughput while it {title}", xlabel="ms", ylim=(0, 1.25 * GIGABIT))
    below[0].legend(loc="lower right", fontsize="small")
