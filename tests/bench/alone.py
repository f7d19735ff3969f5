"""Our engines alone, kernels warm; each in a process of its own, so that memory is its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from tests.bench.table import Table, goal
from tests.bench.timing import Times, repeat

SMALL, LARGE = "xgft:3;12,12,12;1,12,12", "xgft:3;18,18,36;1,18,18"
ENGINES = ("sar", "dfsssp", "minhop")


def tables(full: bool) -> Iterator[Table]:
    """1,728 and 11,664 hosts."""
    table = Table(
        "Our engines alone, after warm-up",
        (
            "fabric",
            "engine",
            "route, s",
            "CPU, s",
            "check, s",
            "measure, s",
            "peak, route",
            "peak, all",
        ),
        "Job mix `mix:1`. Routing: the whole call, median (least … most) of the runs after a first "
        "one, and the median of their CPU time; check (every pair reached, no credit loop) and "
        "measure: the best of three. Peak memory is the largest resident size of a process of its "
        "own, interpreter, libraries and fabric included: after routing, and after all.",
    )
    for spec, seconds, runs in ((SMALL, 0.1, 9), (LARGE, 1.5, 5)):
        for engine in ENGINES:
            found = in_own_process(spec, engine, runs)
            times = Times(found["route"])
            table.add(
                f"{found['hosts']:,} hosts",
                engine,
                times.show(),
                f"{Times(found['route_cpu']).median:.3f}",
                f"{found['check']:.2f}",
                f"{found['measure']:.2f}",
                f"{found['route_mb']:.0f} MB",
                f"{found['peak_mb']:.0f} MB",
            )
            if engine == "sar":
                where = f"sar at {found['hosts']:,} hosts"
                table.goals.append(goal(where, times.median, seconds, "s"))
                cpu = Times(found["route_cpu"]).median
                table.goals.append(goal(f"{where}, CPU alone", cpu, seconds, "s"))
                if spec == LARGE:
                    table.goals.append(goal(f"{where}, routing", found["route_mb"], 600, "MB"))
                    table.goals.append(goal(f"{where}, with checks", found["peak_mb"], 600, "MB"))
    yield table


def in_own_process(spec: str, engine: str, runs: int) -> dict[str, Any]:
    """What `main` prints."""
    command = [sys.executable, "-m", "tests.bench.alone", spec, engine, str(runs)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(spec: str, engine: str, runs: int) -> None:
    """One engine on one fabric, as JSON."""
    from sar_agent.check import check_routes
    from sar_agent.commands.output import peak_rss_mb
    from sar_agent.fabric.spec import load_fabric
    from sar_agent.jobs.synthetic import synthetic_mix
    from sar_agent.measure import measure
    from sar_agent.routing import Options, load_engine

    fabric = load_fabric(spec)
    mix, chosen = synthetic_mix(fabric, 1), load_engine(engine)
    routes = chosen.route(fabric, mix, Options())
    route = repeat(lambda: chosen.route(fabric, mix, Options()), runs)
    route_mb = peak_rss_mb()
    check = repeat(lambda: check_routes(fabric, routes).require(), 4)[1:]
    measured = repeat(lambda: measure(fabric, mix, routes), 4)[1:]
    print(
        json.dumps(
            {
                "hosts": fabric.terminals,
                "route": route,
                "route_cpu": route.cpu,
                "check": min(check),
                "measure": min(measured),
                "route_mb": route_mb,
                "peak_mb": peak_rss_mb(),
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
