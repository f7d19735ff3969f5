"""Which trees need more than one virtual lane, and what keeps others in one: tables of
docs/lanes.md and of sar_lab/research/pages/lanes-measured.md.

python -m tests.bench.lanes_needed [ENGINE]            which trees one lane serves, by kind
python -m tests.bench.lanes_needed [ENGINE] --without  the same trees, each part left out in turn
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest import mock

from sar_agent.check import check_routes
from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.fabric import Fabric
from sar_agent.fabric.components import is_connected
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, load_engine, root_sets, template, turn_order, updn
from sar_agent.routing import weighted_trees as trees_of_engines
from sar_agent.routing.lanes.assign_lanes import WORTH, largest_load
from sar_agent.routing.lanes.hop import hop_lanes
from tests.worlds.odd_trees import degraded, site

SERVED = ("one lane", "updn", "neither, but hop by hop", "neither, by path only")
four = partial(site, rails=4, leaves=4, cores=4, storage=3)
pods = partial(site, rails=4, pods=3, storage=2)
MEET, JOINED = "rails that meet at storage", "rails joined at cores"
PARTS: dict[str, tuple[Any, str, Any]] = {
    "an order in which no choice closes a loop": (
        trees_of_engines, "turn_order", lambda *_: None
    ),
    "switches lifted where paths turn": (turn_order, "LIFTED", 0),
    "several ideas of what a leaf switch is": (turn_order, "IDEAS_OF_LEAVES", 1),
    "heights below sets of roots": (turn_order, "heights_below_roots", lambda *_: iter(())),
    "switches lifted that join leaf switches (`updn`)": (root_sets, "LIFTED", 0),
    "more orders than around one switch (`updn`)": (updn, "places_by_height", lambda *_: []),
}  # fmt: skip
"""Part → module, name and value that leave it out."""


def trees() -> Iterator[tuple[str, Fabric]]:
    """(kind, tree); some are in pieces."""
    for seed in range(20):
        for joined, kind in ((False, MEET), (True, JOINED)):
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


def rank(fabric: Fabric, engine: str) -> int:
    """0 where the engine's routes need one lane, 1 where `updn` takes their place, else 2."""
    template._kept.clear()  # made with other parts
    mix = synthetic_mix(fabric, 1)
    routes = load_engine(engine).route(fabric, mix, Options())
    if check_routes(fabric, routes).passed:
        return 0
    other = load_engine("updn").route(fabric, JobMix(()), Options())
    ours, theirs = (largest_load(fabric, each.egress, mix) for each in (other, routes))
    return 1 if ours <= WORTH * max(1.0, theirs) else 2


def served(fabric: Fabric, engine: str) -> str:
    """The first of `SERVED`."""
    found = rank(fabric, engine)
    if found == 2:
        routes = load_engine(engine).route(fabric, synthetic_mix(fabric, 1), Options())
        laid = hop_lanes(fabric, routes) or hop_lanes(fabric, routes, other_paths=True)
        found = 2 if laid else 3
    return SERVED[found]


def without(fabrics: Iterator[Fabric], engine: str) -> Iterator[str]:
    """A table: how many fabrics are served worse or better where a part is left out."""
    ranks = [
        (rank(fabric, engine), [_rank_without(at, fabric, engine) for at in PARTS.values()])
        for fabric in fabrics
    ]
    yield f"| left out, of {len(ranks)} trees | more lanes | `updn` | no `updn` | fewer lanes |"
    for i, part in enumerate(PARTS):
        row = Counter((today, others[i]) for today, others in ranks)
        worse, better = row[0, 2] + row[1, 2], row[2, 0] + row[2, 1]
        yield f"| {part} | {worse} | {row[0, 1]} | {row[1, 0]} | {better} |"


def _rank_without(at: tuple[Any, str, Any], fabric: Fabric, engine: str) -> int:
    with mock.patch.object(*at):
        return rank(fabric, engine)


def main() -> None:
    """Prints the table."""
    given = [word for word in sys.argv[1:] if word != "--without"]
    engine = given[0] if given else "sar-plus"
    connected = ((kind, fabric) for kind, fabric in trees() if is_connected(fabric))
    if "--without" in sys.argv:
        print(*without((fabric for _, fabric in connected), engine), sep="\n")
        return
    rows: dict[str, Counter[str]] = {}
    for kind, fabric in connected:
        rows.setdefault(kind, Counter())[served(fabric, engine)] += 1
    print("| trees | all |", *(f"{name} |" for name in SERVED))
    for kind, row in rows.items():
        print(f"| {kind} | {row.total()} |", *(f"{row[name]} |" for name in SERVED))


if __name__ == "__main__":
    main()
