"""`sar-agent rank-order`: the hosts of a job in the order of the switches, for MPI."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sar_agent.commands.announce import note
from sar_agent.commands.host_options import load_given, with_host_options
from sar_agent.commands.inputs import CONFIG_PATH, ConfigOption, JsonOption, present, print_answer
from sar_agent.util.plural import plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sar_agent.fabric import Fabric
    from sar_agent.jobs.record import JobRecord


@with_host_options
def rank_order(
    job: Annotated[str, typer.Argument(help="Slurm's job number")],
    fabric: Annotated[
        str | None,
        typer.Option(
            "--fabric",
            callback=present,
            help="the fabric, as for `route`; without it, as configured",
        ),
    ] = None,
    jobs: Annotated[
        Path | None,
        typer.Option(
            "--jobs",
            callback=present,
            help="the running jobs, as for `route`; without it, as configured",
        ),
    ] = None,
    form: Annotated[
        Literal["hostfile", "rankfile", "list"],
        typer.Option(
            "--form",
            help="hostfile (a host and its slots a line), rankfile (Open MPI's) or list (one line "
            "for --nodelist)",
        ),
    ] = "hostfile",
    tasks: Annotated[
        int, typer.Option("--tasks-per-node", min=1, max=4096, help="tasks on each host")
    ] = 1,
    config: ConfigOption = CONFIG_PATH,
    as_json: JsonOption = False,
) -> None:
    """Print the hosts of a job in switch order, so that neighbouring ranks share a leaf switch.

    Leaf switches that are near each other follow each other. Changes nothing.
    """
    from sar_agent.jobs.find_job import require_job
    from sar_agent.slurm.job_files import read_jobs_file
    from sar_agent.slurm.states import STATES
    from sar_agent.slurm.switch_order import in_switch_order

    network, records = _inputs(fabric, jobs, config)
    queue = partial(read_jobs_file, jobs, STATES, hostless=True) if jobs else tuple
    record = require_job(records, job, queue)
    known, unknown = in_switch_order(network, record.hosts)
    if unknown and not as_json:
        these = plural(len(unknown), "host is", "hosts are")
        note(f"{these} not in the fabric and last: {', '.join(unknown[:5])}")
    hosts = [{"host": host, "switch": switch} for host, switch in known]
    answer = {"job": record.id, "hosts": hosts, "unknown_hosts": unknown}
    words = "\n".join(_lines([*(host for host, _ in known), *unknown], form, tasks))
    print_answer(answer, words, as_json=as_json)


def _lines(hosts: list[str], form: str, tasks: int) -> Iterable[str]:
    if form == "list":
        return [",".join(hosts)]
    if form == "hostfile":
        return [f"{host} slots={tasks}" for host in hosts]
    return [
        f"rank {place * tasks + task}={host} slot={task}"
        for place, host in enumerate(hosts)
        for task in range(tasks)
    ]


def _inputs(fabric: str | None, jobs: Path | None, config: Path) -> tuple[Fabric, list[JobRecord]]:
    from sar_agent.slurm.job_files import read_jobs_file

    if fabric and jobs:
        return load_given(fabric), list(read_jobs_file(jobs))
    from sar_agent.agent.build import build_site
    from sar_agent.config.model import load_config

    observer = build_site(load_config(config)).observer
    network = load_given(fabric) if fabric else observer.observe().fabric
    if jobs:
        return network, list(read_jobs_file(jobs))
    observer.poll_queue()
    return network, list(observer.running())
