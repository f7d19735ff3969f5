"""`trial --rehearse`: the site's own commands on its own tables and on ours, in an emulated fabric
of what was read of the site. Nothing is installed, and no node of the site is used.

A host of the reservation has one rank, as `mpirun` starts it, at its first live port.

**Weak spot:** commands run here as root, with one rank for each node, whatever `--launch` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sar_agent.errors import TooMany
from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import Job, make_job
from sar_lab.emulate import WHAT_IT_IS_NOT
from sar_lab.emulate.benchmark import Benchmark
from sar_lab.emulate.command_runner import command_folder, command_runner
from sar_lab.emulate.emulation import BUSY, Emulated, Emulation
from sar_lab.emulate.namespaces import EmulatedFabric, require_size
from sar_lab.live.process import find_program
from sar_lab.trial.site_look import SiteLook
from sar_lab.trial.trial_run import Sample, TrialResult

LEAST_SECONDS, MOST_SECONDS = 10.0, 120.0
"""After which a command is given up: starts of Open MPI hang now and then, and are repeated."""


def require_small(fabric: Fabric) -> None:
    """Raises `TooMany` where this machine does not carry the site, before anything is built."""
    try:
        require_size(fabric)
    except TooMany as error:
        raise TooMany(
            str(error),
            remedy="rehearse on a machine with more processors, or time the command on a smaller "
            "fabric: sar-lab emulate --fabric xgft:2;8,6;1,4 --jobs mix:7 --run 'mpirun COMMAND'",
        ) from None


def rehearse(
    look: SiteLook,
    benchmarks: Sequence[Benchmark],
    second: Benchmark | None,
    result: TrialResult,
    *,
    rate: float,
    seconds: float,
    tell: Callable[[str], None],
) -> SiteLook:
    """Fills `result`; gives the look with what was emulated among its facts. `rate`: bits a second
    of all cables; `seconds`: for all commands together. Raises `SarError`."""
    fabric = look.fabric
    jobs = JobMix(tuple(_job(fabric, n, h) for n, h in enumerate((look.nodes, look.beside)) if h))
    runs = len(benchmarks) * (1 + (second is not None)) * len(look.tables) * result.rounds
    each = min(max(LEAST_SECONDS, seconds / runs), MOST_SECONDS)
    find_program("mpirun", "openmpi-bin")
    said = []
    with command_folder() as folder, EmulatedFabric(fabric, rate, management=True) as network:
        tell(f"{fabric.switches} switches and {len(network.hosts)} host ports are emulated")
        for beside in (None, second) if second else (None,):
            mix = jobs if beside else JobMix(jobs.jobs[:1])
            programs = {
                b.name: command_runner(folder, _by_mpi(b), each, beside and _by_mpi(beside))
                for b in benchmarks
            }
            emulation = Emulation(fabric, mix, look.tables, programs, result.rounds, tell)
            emulation.run(Emulated(network, mix))
            result.samples += _samples(emulation, result, beside is not None)
            said += [
                f"{p.name}{' beside the second job' if beside else ''}: {p.rate / 1e6:g} Mbit/s, "
                f"idle at least {min(map(p.idle, p.runs)):.2f}"
                for p in emulation.measured
            ]
    result.back, result.is_back = "nothing was installed on the site", True
    return replace(look, facts=(*look.facts, ("emulated", f"{WHAT_IT_IS_NOT}; {'; '.join(said)}")))


def _job(fabric: Fabric, number: int, hosts: Sequence[str]) -> Job:
    ports = ([t for t in fabric.job_ports[h] if fabric.terminal_up[t]] for h in hosts)
    return make_job(str(number + 1), [live[0] for live in ports if live])


def _starts_itself(benchmark: Benchmark) -> bool:
    return benchmark.command[0].rpartition("/")[2] in ("mpirun", "mpiexec", "orterun")


def _by_mpi(benchmark: Benchmark) -> Benchmark:
    """As Slurm would start it on every node."""
    if _starts_itself(benchmark):
        return benchmark
    return replace(benchmark, command=("mpirun", *benchmark.command))


def _samples(emulation: Emulation, result: TrialResult, beside: bool) -> Iterator[Sample]:
    for program in emulation.measured:
        if program.busy:
            result.notes.append(f"{program.name}: {BUSY}")
            continue
        for tables, runs in program.runs.items():
            result.notes += [f"{program.name}, {tables}, {why}" for why in program.lost(tables)]
            for number, run in runs.items():
                for printed in run.printed[:1]:
                    yield Sample(number, tables, program.name, beside, printed.value,
                                 printed.unit, printed.time, run.seconds[0])  # fmt: skip
