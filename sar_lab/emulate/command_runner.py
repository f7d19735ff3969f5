"""A user's command as a program that can be timed: once for each job, by its own launcher, such as
Open MPI's mpirun, in the namespaces of the job's hosts.

The launcher starts on the job's first host. The environment tells Open MPI the hosts, a stand-in
for the remote shell, and to send messages by the cables of the fabric and everything else by a
second network without rates (`mg0`); other launchers find the hosts in `SAR_HOSTS` and the stand-in
in `SAR_RSH`. `SAR_FOLDER` is a folder of the job alone, with small inputs of HPCC and LAMMPS
(`inputs/`). The time is the number that the command prints (`benchmark.py`), so that starting the
ranks does not count. Each job's processes are a PID namespace, and end with this process.

**Weak spot:** jobs are started together, but nothing makes their programs begin at one time: let a
program repeat what it measures. The idle share is that of the whole command, its start included.
"""

from __future__ import annotations

import os
import shlex
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path

from sar_agent.errors import SarError
from sar_lab.emulate.benchmark import Benchmark, Reading
from sar_lab.emulate.emulation import Emulated, Timed
from sar_lab.emulate.idle import idle_share, read_ticks
from sar_lab.emulate.namespaces import HOST_PORT, MANAGEMENT_PORT
from sar_lab.emulate.repeated import Repeated
from sar_lab.emulate.runner import STARTS, Run, compiled
from sar_lab.live.process import PATIENCE, find_program

OPEN_MPI = {
    "pml": "ob1",
    "btl": "tcp,self",
    "btl_tcp_if_include": HOST_PORT,
    "oob_tcp_if_include": MANAGEMENT_PORT,
    "mpi_yield_when_idle": "1",
    "hwloc_base_binding_policy": "none",
}
"""Settings of Open MPI by which ranks send over the cables of the fabric, and leave processors idle
while they wait."""


class CommandFolder:
    """The files by which launchers reach hosts: `rsh` and a link for each namespace."""

    def __init__(self, folder: Path, no_spin_library: Path) -> None:
        self.rsh, self._hosts, self._folder = folder / "rsh", folder / "hosts", folder
        self._hosts.mkdir()
        find_program("nsenter", "util-linux")
        self.rsh.write_text(
            "#!/bin/sh\n# rsh HOST COMMAND...: runs it in the network of an emulated host\n"
            f"host=$1; shift\nexport LD_PRELOAD={shlex.quote(str(no_spin_library))}\n"
            f"exec nsenter --net={shlex.quote(str(self._hosts))}/$host unshare --uts "
            """sh -c 'hostname "$0"; exec sh -c "$1"' "$host" "$*"\n"""
        )
        self.rsh.chmod(0o755)

    def lead_to(self, site: Emulated) -> None:
        """Links of these hosts."""
        for terminal, space in enumerate(site.network.hosts):
            link = self._hosts / f"h{terminal}"
            link.unlink(missing_ok=True)
            link.symlink_to(space.path)

    def run(self, benchmark: Benchmark, job: int, terminals: list[int], seconds: float) -> Reading:
        """What the command printed. Raises `SarError`."""
        line, environment = self.start(benchmark, job, terminals)
        return benchmark.run(line, seconds, "install util-linux", environment)

    def start(
        self, benchmark: Benchmark, job: int, terminals: list[int]
    ) -> tuple[list[str], dict[str, str]]:
        """The command line and the environment that start the command on a job's first host."""
        names = [f"h{terminal}" for terminal in terminals]
        own, inputs = self._folder / f"job-{job}", files("sar_lab.emulate") / "inputs"
        own.mkdir(exist_ok=True)
        for each in inputs.iterdir():
            (own / each.name).write_bytes(each.read_bytes())
        hosts = self._folder / f"hosts-of-job-{job}"
        hosts.write_text("".join(f"{name} slots=1\n" for name in names))
        settings = OPEN_MPI | {
            "plm_rsh_agent": str(self.rsh),
            "plm_rsh_no_tree_spawn": "1",
            "orte_default_hostfile": str(hosts),
        }
        return [
            *("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork"),
            *("--kill-child=KILL", str(self.rsh), names[0], shlex.join(benchmark.command)),
        ], {
            **os.environ,
            **{f"OMPI_MCA_{name}": value for name, value in settings.items()},
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "SAR_HOSTS": ",".join(names),
            "SAR_RSH": str(self.rsh),
            "SAR_JOB": str(job),
            "SAR_FOLDER": str(own),
        }


@contextmanager
def no_spin() -> Iterator[Path]:
    """`no_spin.c`, compiled, for LD_PRELOAD. Raises `SarError` without a compiler."""
    with (
        as_file(files("sar_lab.emulate") / "no_spin.c") as source,
        compiled(source, "-shared", "-fPIC") as library,
    ):
        yield library


@contextmanager
def command_folder() -> Iterator[CommandFolder]:
    """Raises `SarError` without a compiler or util-linux."""
    with (
        no_spin() as library,
        tempfile.TemporaryDirectory(prefix="sar-emulate-") as folder,
    ):
        yield CommandFolder(Path(folder), library)


def command_runner(
    folder: CommandFolder, benchmark: Benchmark, seconds: float, beside: Benchmark | None = None
) -> Timed:
    """All jobs run the command at once; with `beside`, the first one does, and the others repeat
    that meanwhile. A start that hangs (one in four under Open MPI on a busy machine) is given up
    after `seconds` and repeated."""

    def once(site: Emulated) -> Run:
        jobs = list(enumerate(site.terminals, 1))
        timed, others = (jobs[:1], jobs[1:]) if beside else (jobs, [])
        with ExitStack() as stack:
            for job, terminals in others:
                stack.enter_context(Repeated(*folder.start(beside or benchmark, job, terminals)))
            before = read_ticks()
            waiting = [
                _Waiting(folder, benchmark, job, terminals, seconds * PATIENCE)
                for job, terminals in timed
            ]
            for each in waiting:
                each.join()
            idle = idle_share(before, read_ticks())
        for each in waiting:
            if each.error is not None:
                if not isinstance(each.error, SarError):
                    raise each.error
                return Run((), idle, lost=f"job {each.job}: {each.error}")
        printed = tuple(each.reading for each in waiting if each.reading)
        return Run(tuple(each.time for each in printed), idle, printed=printed)

    def run(site: Emulated, _: float) -> Run:
        folder.lead_to(site)
        for _start in range(STARTS):
            result = once(site)
            if not result.lost:
                break
        return result

    return Timed(run, None)


class _Waiting(threading.Thread):
    """Waits for the command of one job. Its processes end with this thread, and it ends with the
    program: Ctrl-C need not wait for it."""

    def __init__(
        self,
        folder: CommandFolder,
        benchmark: Benchmark,
        job: int,
        terminals: list[int],
        seconds: float,
    ) -> None:
        super().__init__(daemon=True)
        self.job = job
        self.reading: Reading | None = None
        self.error: BaseException | None = None
        self._call: Callable[[], Reading] = partial(folder.run, benchmark, job, terminals, seconds)
        self.start()

    def run(self) -> None:
        try:
            self.reading = self._call()
        except BaseException as error:
            self.error = error
