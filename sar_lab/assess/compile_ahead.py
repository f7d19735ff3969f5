"""Compiles kernels in other processes before an assessment needs them.

Nearly all of a first assessment is compiling, on one processor. An assessment begins with the
engines that ignore jobs; the other processes begin with what comes last. They leave kernels in
numba's cache, where this process finds them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
from numba.core import event

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import Job
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.quality.bounds import bounds_of
from sar_agent.routing import Options, load_engine
from sar_agent.routing.lanes import routed
from sar_agent.routing.routes import Routes
from sar_lab.fluid import PATTERNS
from sar_lab.fluid.flow_events import end_times
from sar_lab.fluid.flow_paths import routed_links

PARTS = (("updn", "simulate", "sar-plus"), ("dfsssp", "sar"), ("ftree",))
"""What each of the other processes compiles, as many as there are other processors. What needs
kernels that this process compiles first comes last."""
SMALL = "xgft:2;4,4;1,2"
SWITCH = "xgft:1;4;1"


def compile_ahead() -> None:
    """From now on, the first kernel that this process compiles starts the others. They end with
    it."""
    event.register("numba:compile", _Starter())  # type: ignore[no-untyped-call]


def compile_parts(parts: tuple[str, ...]) -> None:
    """Runs these engines, the bounds and the simulation, on tiny fabrics."""
    fabric = load_fabric(SMALL)
    mix = synthetic_mix(fabric, 1)
    for part in parts:
        if part == "simulate":
            _simulate(load_fabric(SWITCH))
        elif part == "bounds":
            bounds_of(fabric, mix, rounds=2)
        else:
            routed(load_engine(part), fabric, mix, Options())


def _simulate(switch: Fabric) -> None:
    """A job on one switch, whose routes need no engine."""
    job = Job("1", np.arange(switch.terminals, dtype=np.int32))
    routes = Routes("", switch.digest, switch.destination_port[None, :, None].astype(np.uint8))
    flows = PATTERNS["alltoall"](switch, JobMix((job,)))
    end_times(routed_links(switch, routes, flows), flows)


def end_with_stdin() -> None:
    """From now on, this process ends as soon as its standard input does."""

    def wait() -> None:
        os.read(0, 1)  # sys.stdin has a lock, which the end of the process would want
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


class _Starter(event.Listener):
    def __init__(self) -> None:
        self.started = False
        self.others: list[subprocess.Popen[bytes]] = []

    def on_start(self, event: event.Event) -> None:
        if self.started:
            return
        self.started = True
        for parts in PARTS[: len(os.sched_getaffinity(0)) - 1]:
            code = (
                f"import sys; sys.path[:] = {sys.path!r}; "
                f"from {__name__} import end_with_stdin, compile_parts; "
                "from sar_agent.util.kernels import collect_seldom; "
                f"collect_seldom(); end_with_stdin(); compile_parts({parts!r})"
            )
            self.others.append(
                subprocess.Popen(
                    [sys.executable, "-I", "-c", code],
                    stdin=subprocess.PIPE,  # closed when this process ends, however it ends
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )

    def on_end(self, event: event.Event) -> None:
        pass
