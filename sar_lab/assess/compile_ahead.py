"""Compiles kernels in other processes before an assessment needs them.

Nearly all of a first assessment is compiling, on one processor. `make venv` ends with an
assessment, which compiles everything; one that finds kernels missing starts other processes, too.
They leave kernels in numba's cache, where this process finds them. One process compiles a part;
those that want the same part wait for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

import numpy as np

from sar_agent.check import check_routes
from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.errors import SarError
from sar_agent.fabric import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import Job
from sar_agent.quality import measure
from sar_agent.quality.bounds import bounds_of
from sar_agent.quality.collective_contention import collective_contention
from sar_agent.routing import Options, load_engine
from sar_agent.routing.graph.csr import graph_of
from sar_agent.routing.graph.destination_order import leaf_by_leaf
from sar_agent.routing.lanes import routed
from sar_agent.routing.routes import Routes
from sar_agent.routing.updn import legal_rows, tree_order
from sar_agent.util.kernels import compile_listeners, kernels_folder
from sar_agent.util.lock_file import Lock
from sar_lab.fluid import PATTERNS
from sar_lab.fluid.flow_events import end_times
from sar_lab.fluid.flow_paths import routed_links

PARTS = (("legal-paths", "simulate", "sar-plus"), ("dfsssp", "sar"), ("ftree",))
"""What each of the other processes compiles, as many as there are other processors. What needs
kernels that this process compiles first comes last. On two processors, this process and the other
compile for about the same time."""
WITHIN = {"updn": "legal-paths", "ftree": "legal-paths", "measures": "minhop"}
"""Parts that begin with another one."""
PATIENCE = 60.0
"""The longest time for which a process waits for another one, in seconds."""
SMALL = "xgft:2;4,4;1,2"
SWITCH = "xgft:1;4;1"


def compile_ahead(parts: Sequence[tuple[str, ...]] = PARTS) -> None:
    """From now on, the first kernel that this process compiles starts the others. They end with
    it."""

    def first(function: object) -> None:
        compile_listeners.remove(first)
        for each in parts[: len(os.sched_getaffinity(0)) - 1]:
            _start(each)

    compile_listeners.append(first)


def compile_parts(parts: tuple[str, ...]) -> None:
    """Runs these engines, the measures and the simulation, on tiny fabrics."""
    fabric = load_fabric(SMALL)
    mix = synthetic_mix(fabric, 1)
    for part in parts:
        if part in WITHIN:
            compile_parts((WITHIN[part],))
        with alone(part):
            if part == "simulate":
                _simulate(load_fabric(SWITCH))
            elif part == "measures":
                routes = routed(load_engine("minhop"), fabric, mix, Options())
                check_routes(fabric, routes)
                measure(fabric, mix, routes, bounds=bounds_of(fabric, mix, rounds=2)).json()
            elif part == "legal-paths":
                _legal_paths(fabric)
            else:
                routed(load_engine(part), fabric, mix, Options())


@contextmanager
def alone(part: str) -> Iterator[None]:
    """Waits until no other process is inside the same context with the same `part`."""
    with ExitStack() as stack:
        if folder := kernels_folder():
            with suppress(SarError):  # a holder that was stopped
                stack.enter_context(Lock(folder, f"{part}.lock", PATIENCE))
        yield


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
    collective_contention(switch, JobMix((job,)), routes.egress[0])


def end_with_stdin() -> None:
    """From now on, this process ends as soon as its standard input does."""

    def wait() -> None:
        os.read(0, 1)  # sys.stdin has a lock, which the end of the process would want
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


_others: list[subprocess.Popen[bytes]] = []


def _start(parts: tuple[str, ...]) -> None:
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        f"from {__name__} import end_with_stdin, compile_parts; "
        "from sar_agent.util.kernels import collect_seldom; "
        f"collect_seldom(); end_with_stdin(); compile_parts({parts!r})"
    )
    _others.append(
        subprocess.Popen(
            [sys.executable, "-I", *(["-B"] if sys.dont_write_bytecode else []), "-c", code],
            stdin=subprocess.PIPE,  # closed when this process ends, however it ends
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    )
