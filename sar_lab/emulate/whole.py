"""An emulation from the options to the measured times."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from sar_agent.commands.inputs import read_fabric, read_mix, read_routes
from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lanes import routed
from sar_agent.util.plural import plural
from sar_lab.emulate.benchmark import Benchmark
from sar_lab.emulate.command_runner import command_folder, command_runner
from sar_lab.emulate.emulation import Emulated, Emulation, Timed
from sar_lab.emulate.namespaces import EmulatedFabric, require_emulation, require_size
from sar_lab.emulate.rank_runner import pattern_runner
from sar_lab.emulate.runner import ranks_program
from sar_lab.emulate.tables import require_way


@dataclass(frozen=True)
class Wishes:
    """The options of `sar-lab emulate`."""

    fabric: str
    jobs: str
    tables: tuple[str, ...]
    """Engines, dumps and folders."""
    run: tuple[str, ...]
    """Patterns."""
    commands: tuple[str, ...]
    """`[NAME=]COMMAND`."""
    seconds: float
    """After which a command is given up."""
    rounds: int
    rate: float
    """Bits a second."""
    size: int


def emulated(wishes: Wishes, tell: Callable[[str], None]) -> Emulation:
    """Raises `SarError` before anything is built where it cannot be: `InputError` for what is
    asked, and where the machine lacks something a sentence that names it."""
    benchmarks = [Benchmark.of(text) for text in wishes.commands]
    names = (*wishes.run, *(benchmark.name for benchmark in benchmarks))
    if not wishes.tables or not names:
        raise InputError("nothing to compare", remedy="give --tables and --run")
    for words in (wishes.tables, names):
        if len(set(words)) < len(words):
            raise InputError(f"a name is given twice in {','.join(words)}", remedy="give it once")
    fabric = read_fabric(wishes.fabric)
    require_size(fabric)
    mix = read_mix(wishes.jobs, fabric)
    if not mix.jobs:
        raise InputError(f"no job of {wishes.jobs} spans two leaf switches", remedy="other jobs")
    tables = {name: tables_of(name, fabric, mix) for name in wishes.tables}
    require_emulation()
    with ExitStack() as stack:
        stack.enter_context(_ended_by_signals())
        programs: dict[str, Timed] = {}
        if wishes.run:
            binary = stack.enter_context(ranks_program())
            programs |= {
                word: pattern_runner(binary, mix, word, wishes.size) for word in wishes.run
            }
        if benchmarks:
            folder = stack.enter_context(command_folder())
            programs |= {b.name: command_runner(folder, b, wishes.seconds) for b in benchmarks}
        began = time.monotonic()
        network = stack.enter_context(
            EmulatedFabric(fabric, wishes.rate, management=bool(benchmarks))
        )
        tell(
            f"{plural(fabric.switches, 'switch', 'switches')} and "
            f"{plural(fabric.terminals, 'host port is', 'host ports are')} up after "
            f"{time.monotonic() - began:.1f} s"
        )
        emulation = Emulation(fabric, mix, tables, programs, wishes.rounds, tell)
        emulation.run(Emulated(network, mix))
    return emulation


def tables_of(name: str, fabric: Fabric, mix: JobMix) -> Routes:
    """Of an engine, or of a dump or folder that exists under this name. Raises `InputError` where
    a host does not reach another by them."""
    if Path(name).exists():
        routes = read_routes(Path(name), fabric)
    else:
        routes = routed(load_engine(name), fabric, mix, Options())
    require_way(fabric, routes, name)
    return routes


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end as Ctrl-C does: ranks first, then the network."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGHUP)
    old = [signal.signal(number, end) for number in numbers]
    try:
        yield
    finally:
        for number, former in zip(numbers, old, strict=True):
            signal.signal(number, former)
