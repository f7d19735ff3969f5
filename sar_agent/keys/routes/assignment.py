"""Who goes where, one to one, at the least cost: assignments of at most some dozen rows.

Small enough that a call of a library would cost more than the work: a key of a three-level tree
asks for w² of them. Kuhn's and Munkres' method with potentials, O(n³).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sar_agent.fabric.model import F64, I64

BAR = 1e15
"""Costs of a pair that must not be."""


@njit(cache=True)
def least_cost(cost: F64, column: I64) -> float:  # pragma: no cover
    """The sum of the best assignment of rows to columns, float64[n, n]; fills `column` int64[n]."""
    n = len(cost)
    u, v = np.zeros(n + 1), np.zeros(n + 1)
    row_of, way = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for i in range(1, n + 1):
        row_of[0] = i
        j0 = 0
        least = np.full(n + 1, np.inf)
        used = np.zeros(n + 1, np.bool_)
        while True:
            used[j0] = True
            i0 = row_of[j0]
            delta, j1 = np.inf, 0
            for j in range(1, n + 1):
                if used[j]:
                    continue
                reduced = cost[i0 - 1, j - 1] - u[i0] - v[j]
                if reduced < least[j]:
                    least[j] = reduced
                    way[j] = j0
                if least[j] < delta:
                    delta, j1 = least[j], j
            for j in range(n + 1):
                if used[j]:
                    u[row_of[j]] += delta
                    v[j] -= delta
                else:
                    least[j] -= delta
            j0 = j1
            if row_of[j0] == 0:
                break
        while j0:
            j1 = way[j0]
            row_of[j0] = row_of[j1]
            j0 = j1
    total = 0.0
    for j in range(1, n + 1):
        column[row_of[j] - 1] = j - 1
        total += cost[row_of[j] - 1, j - 1]
    return total


@njit(cache=True)
def least_most(cost: F64, floor: float) -> float:  # pragma: no cover
    """The largest pair of the assignment whose largest pair is least, and `floor` at least."""
    n = len(cost)
    low = floor
    for i in range(n):  # each row and column takes its least at best
        row = column = np.inf
        for j in range(n):
            row = min(row, cost[i, j])
            column = min(column, cost[j, i])
        low = max(low, row, column)
    while not _fits(cost, low):
        higher = np.inf
        for i in range(n):
            for j in range(n):
                if cost[i, j] > low:
                    higher = min(higher, cost[i, j])
        low = higher
    return low


@njit(cache=True)
def _fits(cost: F64, most: float) -> bool:  # pragma: no cover
    """Whether an assignment has no pair above `most`: augmenting paths, breadth first."""
    n = len(cost)
    row_of = np.full(n, -1, np.int64)
    parent, queue = np.empty(n, np.int64), np.empty(n, np.int64)
    for root in range(n):
        parent[:] = -1
        queue[0] = root
        head, tail, free = 0, 1, -1
        while head < tail and free < 0:
            i = queue[head]
            head += 1
            for j in range(n):
                if cost[i, j] <= most and parent[j] < 0:
                    parent[j] = i
                    if row_of[j] < 0:
                        free = j
                        break
                    queue[tail] = row_of[j]
                    tail += 1
        if free < 0:
            return False
        while True:
            i = parent[free]
            before = -1
            for j in range(n):
                if row_of[j] == i:
                    before = j
            row_of[free] = i
            if i == root:
                break
            free = before
    return True
