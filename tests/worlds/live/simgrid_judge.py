"""When flows end, as SimGrid sees it. Run by the system's Python, which has the simgrid package:
a JSON object on stdin (`capacity`, `paths`, `size`, `step`, `last`, `wait` as in
`sar_lab.fluid`), a list of seconds on stdout. Every flow has two hosts of its own, so any
path is a route.
"""

import json
import sys
import tempfile
from xml.sax.saxutils import quoteattr

import simgrid
from simgrid import Actor, Comm, Engine, Host, this_actor

SCALE = 10**12  # SimGrid takes bytes as whole numbers
CONFIG = {
    "network/model": "CM02",
    "network/TCP-gamma": 0,
    "network/weight-S": 0,
    "network/bandwidth-factor": 1,
    "network/latency-factor": 1,
    "network/crosstraffic": 0,
    "network/optim": "Full",
    "network/maxmin-selective-update": "no",
    "maxmin/precision": 1e-12,
    "surf/precision": 1e-12,
}


def platform(given):
    """One zone with all routes written out, no latencies."""
    yield '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
    yield '<platform version="4.1"><zone id="z" routing="Full">'
    for f in range(len(given["paths"])):
        yield f'<host id="s{f}" speed="1Gf"/><host id="d{f}" speed="1Gf"/>'
    for c, capacity in enumerate(given["capacity"]):
        bandwidth = quoteattr(f"{capacity * SCALE!r}Bps")
        yield f'<link id="l{c}" bandwidth={bandwidth} latency="0s" sharing_policy="SHARED"/>'
    for f, path in enumerate(given["paths"]):
        yield f'<route src="s{f}" dst="d{f}" symmetrical="NO">'
        yield from (f'<link_ctn id="l{c}"/>' for c in path)
        yield "</route>"
    yield "</zone></platform>"


def waits_for_any(running):
    """The key of a flow in `running` that is over; SimGrid 4 knows sets of activities only."""
    names = list(running)
    if not hasattr(simgrid, "ActivitySet"):  # 3.x
        return names[Comm.wait_any([running[f] for f in names])]
    over = simgrid.ActivitySet(list(running.values())).wait_any()
    return next(f for f in names if running[f] == over)


def play(given, steps, end):
    """One sequence of steps: compute, start all flows of a step, wait for each."""
    for wait, flows in steps:
        this_actor.sleep_for(wait)
        running = {
            f: Comm.sendto_async(
                Host.by_name(f"s{f}"), Host.by_name(f"d{f}"), round(given["size"][f] * SCALE)
            )
            for f in flows
        }
        while running:
            done = waits_for_any(running)
            end[done] = Engine.clock
            del running[done]


def main():
    given = json.load(sys.stdin)
    options = [f"--cfg={name}:{value}" for name, value in CONFIG.items()]
    engine = Engine(["judge", "--log=root.thresh:error", *options])
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write("\n".join(platform(given)))
        file.flush()
        engine.load_platform(file.name)
    end = [0.0] * len(given["paths"])
    steps = []
    for p, last in enumerate(given["last"]):
        flows = [f for f, step in enumerate(given["step"]) if step == p]
        steps.append((given["wait"][p], flows))
        if last:
            Actor.create(f"a{p}", Host.by_name("s0"), play, given, steps, end)
            steps = []
    engine.run()
    print(json.dumps(end))


main()
