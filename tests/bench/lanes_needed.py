"""Which trees need more than one virtual lane: the table of docs/lanes.md.

python -m tests.bench.lanes_needed [ENGINE]
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial

from sar_agent.check import check_routes
from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.fabric import Fabric
from sar_agent.fabric.components import is_connected
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine
from sar_agent.routing.lanes.assign_lanes import WORTH, largest_load
from sar_agent.routing.lanes.hop import hop_lanes
from tests.worlds.odd_trees import degraded, site

SERVED = ("one lane", "updn", "neither, but hop by hop", "neither, by path only")
four = partial(site, rails=4, leaves=4, cores=4, storage=3)
pods = partial(site, rails=4, pods=3, storage=2)
MEET, JOINED = "rails that meet at storage", "rails joined at cores"


def trees() -> Iterator[tuple[str, Fabric]]:
    """(kind, tree); some are in pieces."""
    for seed in range(20):
        for joined, kind in (
            (False, "rails that meet at storage"),
            (True, "rails joined at cores"),
        ):
            whole = site(joined=joined, seed=seed)
            yield kind, whole
            yield kind, degraded(whole, 0.03, seed)
        yield "rail pods", site(storage=0, bridges=2, seed=seed)
    for seed in range(10):
        yield "four rails", four(joined=True, seed=seed)
        yield "four rails", four(seed=seed)
        yield "rail pods", pods(bridges=2, seed=seed)
        yield "rail pods", degraded(pods(bridges=1, management=0, seed=seed), 0.05, seed)
    for spec in ("xgft:3;4,4,4;1,2,2", "xgft:3;3,4,6;1,2,3"):
        for share in (0.02, 0.05, 0.1, 0.2):
            for seed in range(5):
                yield "2 to 20 % of cables gone", degraded(load_fabric(spec), share, seed)


def served(fabric: Fabric, engine: str) -> str:
    """The first of `SERVED`."""
    mix = synthetic_mix(fabric, 1)
    routes = load_engine(engine).route(fabric, mix, Options())
    if check_routes(fabric, routes).passed:
        return SERVED[0]
    other = load_engine("updn").route(fabric, JobMix(()), Options())
    ours, theirs = (largest_load(fabric, each.egress, mix) for each in (other, routes))
    if ours <= WORTH * max(1.0, theirs):
        return SERVED[1]
    laid = hop_lanes(fabric, routes) or hop_lanes(fabric, routes, other_paths=True)
    return SERVED[2] if laid else SERVED[3]


def main() -> None:
    """Prints a row for each kind of tree."""
    engine = sys.argv[1] if sys.argv[1:] else "sar-plus"
    rows: dict[str, Counter[str]] = {}
    for kind, fabric in trees():
        if is_connected(fabric):
            rows.setdefault(kind, Counter())[served(fabric, engine)] += 1
    print("| trees | all |", *(f"{name} |" for name in SERVED))
    for kind, row in rows.items():
        print(f"| {kind} | {row.total()} |", *(f"{row[name]} |" for name in SERVED))


if __name__ == "__main__":
    main()
