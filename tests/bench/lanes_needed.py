"""Virtual lanes that routes need, by free choice among all shortest paths and as the engines choose
(`routing/one_lane.py`): the table on docs/lanes.md, which a test compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.fabric.components import connected_components
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import Options, load_engine, one_lane, template
from sar_agent.routing.lanes import with_lanes
from tests.bench.bench_fabrics import FULL_BISECTION, fabric_of
from tests.bench.table import Table
from tests.odd_trees import site

ENGINES = ("dfsssp", "sar", "sar-plus")
REAL = ("dgx-ndr", "director-notabs", "psmn-x5", "selene-storage", "small-2014")
SPECS = (*FULL_BISECTION, "xgft:3;6,6,6;1,3,2", "dragonfly:a=4,p=2,h=2", "torus:4x4x4")
HEAD = "Virtual lanes needed"


def fabrics() -> dict[str, Callable[[], Fabric]]:
    """Makes each fabric, by its name in the table."""
    made: dict[str, Callable[[], Fabric]] = {
        name: lambda name=name: fabric_of(name)  # type: ignore[misc]
        for name in (*REAL, *SPECS)
    }
    for spec in SPECS[:3]:
        for share in (0.02, 0.05, 0.1):
            made[f"{spec}, {share:.0%} gone"] = lambda spec=spec, share=share: degraded(  # type: ignore[misc]
                fabric_of(spec), share
            )
    for joined in (False, True):
        for seed in range(8):
            name = f"two rails, {'joined' if joined else 'meeting at storage'}, seed {seed}"
            made[name] = lambda joined=joined, seed=seed: site(joined=joined, seed=seed)  # type: ignore[misc]
    made["four rails, joined, seed 1"] = lambda: site(
        rails=4, leaves=4, cores=4, storage=3, joined=True, seed=1
    )
    return made


def degraded(fabric: Fabric, share: float) -> Fabric:
    """Without a share of its cables, drawn until the rest is connected."""
    draw = np.random.default_rng(1)
    cables = np.flatnonzero(np.arange(fabric.channels) < fabric.channel_reverse)
    while True:
        cut = draw.choice(cables, int(share * len(cables)), replace=False)
        found = fabric.with_links_down(cut.tolist())
        if not connected_components(found).any():
            return found


def lanes_of(fabric: Fabric, engine: str) -> int:
    """The virtual lanes of the engine's routes for `mix:1`."""
    mix, options = synthetic_mix(fabric, 1), Options()
    routes = load_engine(engine).route(fabric, mix, options)
    return with_lanes(routes, fabric, mix, options).virtual_lanes


@contextmanager
def free_choice() -> Iterator[None]:
    """Engines choose among all shortest paths, whatever lanes that needs."""
    with (
        patch.object(one_lane, "one_lane_cache", return_value=None),
        patch.object(template, "_kept", []),  # a template of the other choice
    ):
        yield


def tables(full: bool) -> Iterator[Table]:
    """One table; without `full` the two larger trees are left out."""
    table = Table(
        HEAD,
        ("fabric", *ENGINES),
        "Free choice → as the engine chooses, `mix:1`. Rails are those of `tests/odd_trees.py`.",
    )
    for name, make in fabrics().items():
        if not full and name.startswith(FULL_BISECTION):
            continue
        fabric, cells = make(), []
        for engine in ENGINES:
            with free_choice():
                before = lanes_of(fabric, engine)
            cells.append(f"{before} → {lanes_of(fabric, engine)}")
        table.add(name, *cells)
    yield table
