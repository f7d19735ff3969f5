"""Compiles kernels in other processes before an assessment needs them.

Nearly all of a first assessment is compiling, on one processor. An assessment begins with the
engines that ignore jobs; the other processes compile what comes last. They leave kernels in numba's
cache, where this process finds them. What another process is compiling, this one waits for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress

import numpy as np
from numba.core import event

from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import Job
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.quality.bounds import bounds_of
from sar_agent.routing import Options, load_engine
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.lanes import routed
from sar_agent.routing.minhop import leaf_by_leaf
from sar_agent.routing.phase_contention import phase_contention
from sar_agent.routing.routes import Routes
from sar_agent.routing.updn import legal_rows, tree_order
from sar_lab.fluid import PATTERNS
from sar_lab.fluid.flow_events import end_times
from sar_lab.fluid.flow_paths import routed_links

PARTS = (("legal-paths", "simulate", "sar-plus"), ("dfsssp", "sar"), ("ftree",))
"""What each of the other processes compiles, as many as there are other processors. What needs
kernels that this process compiles first comes last. On two processors, this process and the other
compile for about the same time."""
WITHIN = {"updn": "legal-paths", "ftree": "legal-paths"}
"""Parts of engines that another process may compile alone."""
PATIENCE = 60.0
"""The longest time for which this process waits for another one, in seconds."""
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
        _wait_for_others(part)
        if part == "simulate":
            _simulate(load_fabric(SWITCH))
        elif part == "bounds":
            bounds_of(fabric, mix, rounds=2)
        elif part == "legal-paths":
            _legal_paths(fabric)
        else:
            routed(load_engine(part), fabric, mix, Options())


def _wait_for_others(part: str) -> None:
    """Returns once no other process is compiling this part, or what is within it."""
    until = time.monotonic() + PATIENCE
    for other in _others:
        while other.now() in (part, WITHIN.get(part, part)) and time.monotonic() < until:
            time.sleep(0.02)


def _legal_paths(fabric: Fabric) -> None:
    graph = graph_of(fabric)
    legal = tree_order(fabric, graph)
    legal_rows(fabric, graph, legal, leaf_by_leaf(fabric)[: fabric.terminals])


def _simulate(switch: Fabric) -> None:
    """A job on one switch, whose routes need no engine."""
    job = Job("1", np.arange(switch.terminals, dtype=np.int32))
    routes = Routes("", switch.digest, switch.destination_port[None, :, None].astype(np.uint8))
    flows = PATTERNS["alltoall"](switch, JobMix((job,)))
    end_times(routed_links(switch, routes, flows), flows)
    phase_contention(switch, JobMix((job,)), routes.egress[0])


def end_with_stdin() -> None:
    """From now on, this process ends as soon as its standard input does."""

    def wait() -> None:
        os.read(0, 1)  # sys.stdin has a lock, which the end of the process would want
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


class _Other:
    """Another process, which compiles `parts` and names each when it begins with it."""

    def __init__(self, parts: tuple[str, ...]) -> None:
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            f"from {__name__} import end_with_stdin, compile_parts; "
            "from sar_agent.util.kernels import collect_seldom; collect_seldom(); "
            "end_with_stdin(); "
            f"[(print(part, flush=True), compile_parts((part,))) for part in {parts!r}]"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-I", *(["-B"] if sys.dont_write_bytecode else []), "-c", code],
            stdin=subprocess.PIPE,  # closed when this process ends, however it ends
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout
        self._output = self.process.stdout.fileno()
        os.set_blocking(self._output, False)
        self._part = ""

    def now(self) -> str | None:
        """The part that it is compiling; None once it has ended."""
        with suppress(BlockingIOError):
            if said := os.read(self._output, 4096).split():
                self._part = said[-1].decode()
        return self._part if self.process.poll() is None else None


_others: list[_Other] = []


class _Starter(event.Listener):
    def __init__(self) -> None:
        self.started = False

    def on_start(self, event: event.Event) -> None:
        if not self.started:
            self.started = True
            _others.extend(map(_Other, PARTS[: len(os.sched_getaffinity(0)) - 1]))

    def on_end(self, event: event.Event) -> None:
        pass
