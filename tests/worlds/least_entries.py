"""The least number of entries that a repair of one-lane routes must change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from sar_agent.formats.routes_file import NO_SWITCH, RoutesFile
from tests.worlds.certificates import sends

NEVER = 1 << 60


class LeastEntries:
    """For failures of the fabric of a file with numbers. Entries into dead channels change, entries
    of whole paths stay, and every switch that sends hosts' packets must reach each live destination
    along rising numbers."""

    def __init__(self, file: RoutesFile, dead: Collection[tuple[int, int]]) -> None:
        """`dead` are channels: (row of the switch, port), both directions of each dead cable."""
        assert file.numbers is not None and file.lanes == 1 and len(file.forwarding) == 1
        self.table, self.numbers = file.forwarding[0], file.numbers[0]
        self.far = np.where(file.far_ends == NO_SWITCH, -1, file.far_ends.astype(np.int64) >> 8)
        for s, port in dead:
            self.far[s, port] = -1
        self.sender = sends(file)
        self.down = (self.far < 0).all(axis=1) & (file.far_ends != NO_SWITCH).any(axis=1)
        self.end = np.concatenate([file.terminal_leaf, np.arange(len(file.switch_guids))])
        self.covered = np.concatenate([np.ones(len(file.terminal_leaf)), file.senders]) > 0
        self.dead = dead

    def count(self) -> int:
        """Over all destinations whose switch is live."""
        crossed: dict[int, set[int]] = defaultdict(set)
        for s, port in self.dead:
            if not self.down[s]:
                for column in np.flatnonzero(self.table[s] == port):
                    crossed[int(column)].add(s)
        return sum(
            self._column(column, ends)
            for column, ends in crossed.items()
            if not self.down[self.end[column]]
        )

    def _column(self, column: int, ends: set[int]) -> int:
        if not self.covered[column]:
            return len(ends)
        entry = self.table[:, column]
        order, children = self._broken(entry, ends)
        latest = self._latest(entry, order, int(self.end[column]))
        cost: dict[int, int] = {}
        for s in reversed(order):  # the switches farthest from the dead channels first
            number = {c: int(self.numbers[c, entry[c]]) for c in children[s]}
            stays = sum(cost[c] for c in children[s]) if not self.sender[s] else NEVER
            changed = 1 + sum(cost[c] for c in children[s] if number[c] >= latest[s])
            if s in ends:
                stays += 1  # it goes in any case
            cost[s] = min(stays, changed if latest[s] else NEVER)
        return sum(cost[s] for s in ends)

    def _broken(
        self, entry: NDArray[np.uint8], ends: set[int]
    ) -> tuple[list[int], dict[int, list[int]]]:
        """The switches whose path leads into a dead channel, and for each those that lead to it."""
        order, children = list(ends), {}
        for s in order:
            neighbours = self.far[s][self.far[s] >= 0]
            children[s] = [
                int(c)
                for c in np.unique(neighbours)
                if entry[c] < self.far.shape[1] and self.far[c, entry[c]] == s
            ]
            order += children[s]
        return order, children

    def _latest(self, entry: NDArray[np.uint8], order: list[int], end: int) -> dict[int, int]:
        """The largest number by which each broken switch can begin a rising path; 0 if by none."""
        broken, latest = set(order), dict.fromkeys(order, 0)
        channels = [
            (int(self.numbers[s, port]), s, int(self.far[s, port]))
            for s in order
            for port in np.flatnonzero((self.far[s] >= 0) & (self.numbers[s] > 0))
        ]
        for number, s, far in sorted(channels, reverse=True):
            if far == end:
                after = NEVER
            else:
                after = latest[far] if far in broken else int(self.numbers[far, entry[far]])
            if not latest[s] and after > number:
                latest[s] = number
        return latest
