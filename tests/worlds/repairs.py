"""An oracle for the plugin's repairs, in plain Python. It knows no numbers: it follows every packet
of a host through every mixture of old and new entries, and looks for cycles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import networkx as nx
import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.routes_file import NO_SWITCH, RoutesFile
from tests.worlds.certificates import begin_lanes, lane_table, numbered, sends
from tests.worlds.routed_files import routed_file


@dataclass
class Failure:
    """What the live fabric lacks, in rows of the file."""

    cables: set[tuple[int, int]] = field(default_factory=set)  # either end
    switches: set[int] = field(default_factory=set)

    def commands(self) -> str:
        lines = [f"cable {s} {p}" for s, p in sorted(self.cables)]
        return "\n".join([*lines, *(f"switch {s}" for s in sorted(self.switches)), "go\n"])


class Judge:
    """The fabric of a file after a failure."""

    def __init__(self, file: RoutesFile, failure: Failure) -> None:
        self.file, self.failure = file, failure
        self.up = [s not in failure.switches for s in range(len(file.switch_guids))]
        self.sender, self.lanes, self.begin = sends(file), lane_table(file), begin_lanes(file)
        self.columns = len(file.terminal_guids) + len(file.switch_guids)

    def far(self, s: int, port: int) -> tuple[int, int] | None:
        """The live far end of a port: (switch, port)."""
        if port >= self.file.far_ends.shape[1] or self.file.far_ends[s, port] == NO_SWITCH:
            return None
        end = int(self.file.far_ends[s, port])
        v, q = end >> 8, end & 255
        dead = {(s, port), (v, q)} & self.failure.cables
        return None if dead or not (self.up[s] and self.up[v]) else (v, q)

    def end(self, column: int) -> int:
        terminals = len(self.file.terminal_guids)
        return int(self.file.terminal_leaf[column]) if column < terminals else column - terminals

    def covered(self, column: int) -> bool:
        terminals = len(self.file.terminal_guids)
        return column < terminals or bool(self.file.senders[column - terminals])

    def missing(self, table: np.ndarray) -> Iterator[tuple[int, int, int]]:
        """(offset, switch, column) where a live switch has no way to a live column. Raises if
        entries loop."""
        for o, column in self.live_columns():
            arrives = {self.end(column): True}
            for s in range(len(self.up)):
                way: list[int] = []
                here = s
                while self.up[s] and here not in arrives:
                    assert here not in way, f"a loop to column {column} at switch {here}"
                    way.append(here)
                    on = self.far(here, int(table[o, here, column]))
                    if on is None:
                        arrives[here] = False
                        break
                    here = on[0]
                arrives |= dict.fromkeys(way, arrives.get(here, False))
                if self.up[s] and not arrives[s]:
                    yield o, s, column

    def live_columns(self) -> Iterator[tuple[int, int]]:
        for o in range(len(self.file.forwarding)):
            for column in range(self.columns):
                if self.up[self.end(column)]:
                    yield o, column

    def first_lanes(self, o: int, s: int, column: int, port: int) -> list[int]:
        if self.file.hop_lanes is not None:
            return [lane for lane in range(self.file.lanes) if self.begin[s, port] >> lane & 1]
        lane = int(self.lanes[o, s, column])
        return [] if lane == 255 else [lane]

    def mixtures_are_sound(self, tables: list[np.ndarray]) -> bool:
        """Whether no packet of a host can loop, and no credit loop can form, while each switch has
        its entries from any of the tables."""
        depends: nx.DiGraph[tuple[int, int, int]] = nx.DiGraph()
        for o, column in self.live_columns():
            if not self.covered(column):
                continue
            turns: nx.DiGraph[int] = nx.DiGraph()
            todo = [
                (s, port, lane)
                for s in range(len(self.up))
                if self.up[s] and self.sender[s] and s != self.end(column)
                for port in {int(t[o, s, column]) for t in tables}
                if self.far(s, port)
                for lane in self.first_lanes(o, s, column, port)
            ]
            seen = set(todo)
            while todo:
                s, port, lane = todo.pop()
                on = self.far(s, port)
                assert on is not None
                v, entered = on
                turns.add_edge(s, v)
                if v == self.end(column):
                    continue
                for q in {int(t[o, v, column]) for t in tables}:
                    if self.far(v, q) is None:
                        continue
                    hops = self.file.hop_lanes
                    after = (v, q, lane if hops is None else int(hops[v, entered, q]))
                    depends.add_edge((s, port, lane), after)
                    if after not in seen:
                        seen.add(after)
                        todo.append(after)
            if turns and not nx.is_directed_acyclic_graph(turns):
                return False
        return nx.is_directed_acyclic_graph(depends)

    def rises(self, table: np.ndarray) -> bool:
        """Whether the numbers rise along all paths of hosts."""
        numbers, hops = self.file.numbers, self.file.hop_lanes
        assert numbers is not None
        for o, column in self.live_columns():
            for source in np.flatnonzero(self.sender) if self.covered(column) else ():
                s, port = int(source), int(table[o, source, column])
                for first in self.first_lanes(o, s, column, port) if self.far(s, port) else ():
                    here, lane, last = s, first, 0
                    while here != self.end(column):
                        out = int(table[o, here, column])
                        on = self.far(here, out)
                        if on is None:
                            break
                        if not last < numbers[lane, here, out]:
                            return False
                        last, (here, entered) = int(numbers[lane, here, out]), on
                        after = int(table[o, here, column])
                        if hops is not None and after < hops.shape[2]:
                            lane = int(hops[here, entered, after])
        return True

    def concerned(self, table: np.ndarray, plan: np.ndarray) -> set[tuple[int, int]]:
        """(offset, column) where a live switch's entry is dead, or is not that of the plan."""
        found = set()
        for o, column in self.live_columns():
            for s in range(len(self.up)):
                port = int(table[o, s, column])
                planned = port < self.file.far_ends.shape[1] and (
                    self.file.far_ends[s, port] != NO_SWITCH
                )
                if self.up[s] and (
                    (planned and self.far(s, port) is None) or port != plan[o, s, column]
                ):
                    found.add((o, column))
        return found

    def latest_departure(self, table: np.ndarray, o: int, column: int) -> set[int]:
        """The switches that reach the column if the broken ones are given new entries along rising
        numbers, one lane; the entries in force are not asked for their opinion of mixtures."""
        numbers = self.file.numbers
        assert numbers is not None and self.file.lanes == 1
        end = self.end(column)
        label: dict[int, float] = {end: np.inf}
        for s in range(len(self.up)):
            way, here = [], s
            while here not in label and self.up[here] and here not in way:
                way.append(here)
                on = self.far(here, int(table[o, here, column]))
                if on is None:
                    break
                here = on[0]
            for v in reversed(way if here in label else []):
                number = float(numbers[0, v, table[o, v, column]])
                on = self.far(v, int(table[o, v, column]))
                rises = on is not None and 0 < number < label[on[0]]
                label[v] = number if rises else 0.0  # kept, but of no use to others
        channels = sorted(
            (
                (int(numbers[0, s, p]), s, p)
                for s in range(len(self.up))
                for p in range(1, self.file.far_ends.shape[1])
                if s not in label and self.far(s, p) and numbers[0, s, p]
            ),
            reverse=True,
        )
        for number, s, p in channels:
            on = self.far(s, p)
            if s not in label and on and label.get(on[0], 0.0) > number:
                label[s] = number
        return {s for s in label if label[s] > 0}


def degraded(fabric: Fabric, seed: int, cut: float) -> Fabric:
    if not cut:
        return fabric
    size = max(1, int(fabric.channels * cut / 2))
    drawn = np.random.default_rng(seed).choice(fabric.channels, size, replace=False)
    return fabric.with_links_down([int(c) for c in drawn])


def plan_of(
    spec: str, engine: str, seed: int = 0, cut: float = 0.0, lanes: str = "", offsets: int = 1
) -> RoutesFile | None:
    """A numbered file; None where the paths close a credit loop."""
    fabric = degraded(load_fabric(spec), seed, cut)
    file = routed_file(fabric, engine, seed, lanes, offsets)
    # Unknown hosts may need what the known ones leave free.
    return numbered(file) or numbered(replace(file, senders=np.zeros_like(file.senders)))


def failures(file: RoutesFile, rng: np.random.Generator, kind: str) -> Failure:
    """One random failure; a cable is named by one end."""
    ends = np.argwhere(file.far_ends != NO_SWITCH)
    if kind in ("cable", "few", "many"):
        count = {"cable": 1, "few": 3, "many": max(2, len(ends) // 40)}[kind]
        drawn = rng.choice(len(ends), min(count, len(ends)), replace=False)
        return Failure(cables={(int(s), int(p)) for s, p in ends[drawn]})
    bears = np.zeros(len(file.switch_guids), np.bool_)
    bears[file.terminal_leaf] = True
    wanted = np.flatnonzero(~bears if kind == "spine" and not bears.all() else bears)
    return Failure(switches={int(rng.choice(wanted))})
