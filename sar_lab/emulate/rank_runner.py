"""A pattern as a program that can be timed: its ranks in the namespaces of the jobs' hosts."""

from __future__ import annotations

from pathlib import Path

from sar_agent.jobs import JobMix
from sar_lab.emulate.emulation import Emulated, Timed
from sar_lab.emulate.phases import program_of
from sar_lab.emulate.runner import JobToRun, Run, run_jobs


def pattern_runner(binary: Path, mix: JobMix, pattern: str, size: int) -> Timed:
    """All jobs of `mix` run `pattern`, `size` bytes through each one's busiest port. Raises
    `InputError` where a job cannot, before anything is started."""
    programs = [program_of(job, pattern, size) for job in mix.jobs]

    def run(site: Emulated, seconds: float) -> Run:
        network = site.network
        jobs = [
            JobToRun(
                tuple(network.hosts[t].path for t in terminals),
                tuple(map(network.address, terminals)),
                program,
            )
            for terminals, program in zip(site.terminals, programs, strict=True)
        ]
        return run_jobs(binary, jobs, seconds)

    return Timed(run, size)
