"""Measures one of our engines on one fabric, in a separate process for its memory."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, NamedTuple

from tests.bench.machine import peak_mb
from tests.bench.quality import Quality
from tests.bench.timing import Times, repeat

RUNS = 7
"""Measured runs, after a first one that loads the compiled kernels."""
CHANGES = 5


class EngineRun(NamedTuple):
    """The measurements of one engine, for JSON."""

    seconds: list[float]
    cpu: list[float]
    check_seconds: float
    """CPU time of the check."""
    imports_mb: float
    """Largest resident size before the fabric is read: interpreter and libraries."""
    peak_mb: float
    """After the first routing, kernels and fabric included."""
    quality: Quality
    lanes: int
    changed: float
    """The share of entries that change when one job ends and one of its size starts elsewhere; the
    mean of `CHANGES` consecutive changes."""

    @property
    def times(self) -> Times:
        """CPU seconds of whole calls, which use one processor: other programs do not count."""
        return Times(self.cpu)


def run_engine(fabric: str, engine: str, objective: str, runs: int = RUNS) -> dict[str, Any]:
    """Runs `main` in a process of its own; returns its `EngineRun` as JSON data."""
    command = [
        sys.executable,
        "-m",
        "tests.bench.our_engines",
        fabric,
        engine,
        objective,
        str(runs),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def engine_run_of(found: dict[str, Any]) -> EngineRun:
    """An `EngineRun` from JSON data."""
    return EngineRun(**found | {"quality": Quality(*found["quality"])})


def main(name: str, engine_name: str, objective: str, runs: int) -> None:
    """Prints an `EngineRun` as JSON."""
    from sar_agent.check import check_routes
    from sar_agent.routing import Options, PreviousRoutes, Rerouting, load_engine
    from tests.bench.bench_fabrics import fabric_of
    from tests.bench.quality import quality_of
    from tests.bench.queue import Queue

    engine, options = load_engine(engine_name), Options(objective=objective)  # type: ignore[arg-type]
    imports = peak_mb()
    fabric = fabric_of(name)
    queue = Queue(fabric, 1)
    mix = queue.mix
    engine.route(fabric, mix, options)
    peak = peak_mb()
    times = repeat(lambda: engine.route(fabric, mix, options), runs)
    routes = engine.route(fabric, mix, options)
    quality = quality_of(fabric, mix, routes)
    check = repeat(lambda: check_routes(fabric, routes).require(), 4).cpu[1:]
    changed = 0.0
    for _ in range(CHANGES):
        before, mix = PreviousRoutes(fabric, mix, routes), queue.replace_one()
        if isinstance(engine, Rerouting):
            routes = engine.reroute(before, fabric, mix, options)
        else:
            routes = engine.route(fabric, mix, options)
        changed += routes.entries_changed(before.routes) / routes.egress.size / CHANGES
    lanes = routes.virtual_lanes
    found = EngineRun(list(times), times.cpu, min(check), imports, peak, quality, lanes, changed)
    print(json.dumps(found._asdict()))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
