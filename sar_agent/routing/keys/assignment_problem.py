"""The assignment problem: rows to columns, one to one, at the least cost or the least maximum.

The Hungarian method of Kuhn and Munkres with potentials, O(n³); the bottleneck assignment applies
it to each threshold in turn. Problems have some dozen rows at most, so a call of a library would
cost more than the work: a key of a three-level tree solves w² of them.
"""

from __future__ import annotations

import numpy as np

from sar_agent.fabric.model import F64, I64
from sar_agent.util.kernels import kernel

BAR = 1e15
"""The cost of a forbidden pair."""


@kernel
def least_cost(cost: F64, column: I64) -> float:  # pragma: no cover
    """The least total cost of an assignment, for `cost` float64[n, n]; fills `column` int64[n], the
    column of each row."""
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


@kernel
def least_most(cost: F64, floor: float) -> float:  # pragma: no cover
    """The largest cost in the assignment whose largest cost is least; `floor` at the least."""
    n = len(cost)
    low = floor
    for i in range(n):  # no row or column costs less than its least entry
        row = column = np.inf
        for j in range(n):
            row = min(row, cost[i, j])
            column = min(column, cost[j, i])
        low = max(low, row, column)
    unused = np.empty(n, np.int64)
    while least_cost((cost > low).astype(np.float64), unused) > 0:
        higher = np.inf
        for i in range(n):
            for j in range(n):
                if cost[i, j] > low:
                    higher = min(higher, cost[i, j])
        low = higher
    return low
