"""Random flows over random links, and the fluid model answered slowly, in exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from sar_lab.fluid.flow_links import FlowLinks, flow_links_of
from sar_lab.fluid.flow_steps import Flows

Case = tuple[FlowLinks, Flows]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """1-6 links of several speeds, 1-12 flows over some of them, in steps, some waiting."""
    number = draw(st.integers(1, 6))
    capacity = draw(st.lists(st.integers(1, 12), min_size=number, max_size=number))
    way = st.lists(st.integers(0, number - 1), min_size=1, max_size=4, unique=True)
    paths = draw(st.lists(way, min_size=1, max_size=12))
    size = draw(st.lists(st.integers(1, 8), min_size=len(paths), max_size=len(paths)))
    later = draw(st.lists(st.booleans(), min_size=len(paths) - 1, max_size=len(paths) - 1))
    last = draw(st.lists(st.booleans(), min_size=sum(later), max_size=sum(later)))
    wait = draw(st.lists(st.integers(0, 3), min_size=len(last) + 1, max_size=len(last) + 1))
    return case_of(capacity, paths, size, later, last, wait)


def case_of(
    capacity: ArrayLike,
    paths: list[list[int]],
    size: ArrayLike,
    later: list[bool],
    last: list[bool],
    wait: list[int] | None = None,
) -> Case:
    """`later`: is this flow in another step than the one before it?"""
    path = np.cumsum([0, *map(len, paths)], dtype=np.uint32)
    links = flow_links_of(
        np.array(capacity, np.float64),
        path,
        path[1:].copy(),
        np.concatenate(paths).astype(np.uint32),
    )
    nobody = np.zeros(len(paths), np.uint32)
    return links, Flows(
        nobody,
        nobody,
        np.array(size, np.float64),
        nobody,
        np.cumsum([0, *later], dtype=np.uint32),
        np.array([*last, True], np.bool_),
        np.zeros(len(last) + 1) if wait is None else np.array(wait, np.float64),
    )


def ways(links: FlowLinks) -> list[list[int]]:
    """The links of each flow."""
    return [links.link[a:b].tolist() for a, b in zip(links.path, links.stop, strict=True)]


def water_filling(capacity: list[Fraction], way: dict[int, list[int]]) -> dict[int, Fraction]:
    """Flow to rate: again and again the tightest link settles the flows on it."""
    left, rate, open_ = list(capacity), {}, dict(way)
    while open_:
        users = {c: [f for f in open_ if c in open_[f]] for c in range(len(left))}
        level, full = min((left[c] / len(on), c) for c, on in users.items() if on)
        for f in users[full]:
            rate[f] = level
            for c in open_.pop(f):
                left[c] -= level
    return rate


def end_times_slowly(links: FlowLinks, flows: Flows) -> list[Fraction]:
    """When each flow ends, sequence after sequence of steps."""
    capacity = [Fraction(c) for c in links.capacity.tolist()]
    to_go = {f: Fraction(size) for f, size in enumerate(flows.size.tolist())}
    way, step, last = ways(links), flows.step.tolist(), flows.last.tolist()
    wait = [Fraction(seconds) for seconds in flows.wait.tolist()]
    end = [Fraction(0)] * len(way)
    begin = {p: wait[p] for p in range(len(last)) if p == 0 or last[p - 1]}
    now = Fraction(0)
    while to_go:
        for p in range(len(last) - 1):
            done = p in begin and all(step[f] != p for f in to_go)
            if done and not last[p] and p + 1 not in begin:
                begin[p + 1] = now + wait[p + 1]
        rate = water_filling(
            capacity, {f: way[f] for f in to_go if begin.get(step[f], now + 1) <= now}
        )
        later = [b - now for b in begin.values() if b > now]
        seconds = min([to_go[f] / r for f, r in rate.items()] + later)
        now += seconds
        for f, r in rate.items():
            to_go[f] -= seconds * r
            if not to_go[f]:
                end[f] = now
                del to_go[f]
    return end
