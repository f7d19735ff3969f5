"""Pairs of ranks that the trace format names with one word, and that generators use."""

from __future__ import annotations

from math import prod

import numpy as np

from sar_agent.fabric.model import I32

AXES = "xyz"


def shift_pairs(ranks: int, by: int) -> I32:
    """int32[N, 2]: rank i to rank i + by, modulo the number of ranks."""
    rank = np.arange(ranks)
    return np.stack([rank, (rank + by) % ranks], axis=1).astype(np.int32)


def all_pairs(ranks: int) -> I32:
    """int32[N (N - 1), 2]: every rank to every other rank."""
    rank = np.arange(ranks)
    both = np.stack(np.meshgrid(rank, rank, indexing="ij"), axis=-1).reshape(-1, 2)
    pairs: I32 = both[both[:, 0] != both[:, 1]].astype(np.int32)
    return pairs


def step_pairs(grid: tuple[int, ...], step: str) -> I32:
    """int32[N, 2]: each rank to its neighbour in direction `+x` … `-z` of a periodic grid. Ranks
    0, 1 … are neighbours along the last axis, as in MPI_Cart_create and `demand/patterns.py`."""
    cube = np.arange(prod(grid)).reshape(grid)
    to = np.roll(cube, -1 if step[0] == "+" else 1, axis=AXES.index(step[1]))
    return np.stack([cube.ravel(), to.ravel()], axis=1).astype(np.int32)


def steps_of(grid: tuple[int, ...]) -> list[str]:
    """`+x -x +y …`, without axes of one rank."""
    axes = [AXES[i] for i, size in enumerate(grid) if size > 1]
    return [sign + axis for axis in axes for sign in "+-"]


def grid_of(ranks: int) -> tuple[int, int, int]:
    """The three most equal factors, largest first, as MPI_Dims_create gives: 36 is 4 x 3 x 3."""
    factors = [
        (a, b, ranks // (a * b))
        for a in _divisors(ranks)
        for b in _divisors(ranks // a)
        if a >= b >= ranks // (a * b)
    ]
    return min(factors, key=lambda grid: (grid[0] - grid[2], grid[0]))


def _divisors(number: int) -> list[int]:
    return [k for k in range(1, number + 1) if number % k == 0]
