"""Tables that need one virtual lane, where these are nearly as good as any.

A second lane costs service level tables at every port, seconds at each install, and half of the
buffers. Free choice among shortest paths needs one as soon as some paths turn on a leaf, which
other paths of the same length seldom must. So where the engine's tables close a credit loop, they
are made once more by shortest paths that go up, then down, wherever there are such
(`turn_order.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from sar_agent.fabric.model import U8
from sar_agent.routing.graph.shortest_path_dag import DagCache, new_cache
from sar_agent.routing.host_paths import HostPaths, host_paths
from sar_agent.routing.shortest_paths import ShortestPaths
from sar_agent.routing.turn_order import turn_order

WORTH = 1.02
"""How many times the largest load of the engine's tables one lane may cost."""


def one_lane_cache(shortest: ShortestPaths) -> DagCache | None:
    """A cache of shortest paths among which no choice closes a credit loop between hosts; None
    where no such paths were found."""
    place = turn_order(shortest.fabric, shortest.graph)
    return None if place is None else new_cache(shortest.fabric, place)


def with_fewest_lanes(
    shortest: ShortestPaths,
    make: Callable[[DagCache], tuple[U8, Callable[[], float]]],
    *,
    any_choice: bool = False,
) -> tuple[U8, HostPaths, DagCache]:
    """What `make` makes of a cache: tables uint8[T + S, S], and the function that tells their
    largest load. Also the dependencies of these tables, and the cache. It holds all shortest paths
    unless one lane is too few for them and enough for others, at most `WORTH` times the load; with
    `any_choice`, too few for the tables that could be chosen among them."""
    every = new_cache(shortest.fabric)
    egress, load = make(every)
    found = host_paths(shortest, egress)
    enough = shortest.rise_then_fall if any_choice else found.one_lane()
    if enough or (some := one_lane_cache(shortest)) is None:
        return egress, found, every
    other, other_load = make(some)
    others = host_paths(shortest, other)
    if other_load() > WORTH * load() or not others.one_lane():
        return egress, found, every
    return other, others, some
