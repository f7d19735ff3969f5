"""Options that several commands share; how commands read their input and print results."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sar_agent.commands.announce import announce_compiling, note
from sar_agent.errors import InputError
from sar_agent.fabric import FORMATS
from sar_agent.util.extensions import extension_names
from sar_agent.util.plural import plural

if TYPE_CHECKING:
    from sar_agent.fabric import Fabric
    from sar_agent.jobs import JobMix
    from sar_agent.jobs.partitions import Partitions
    from sar_agent.jobs.record import JobRecord
    from sar_agent.routing import Routes


def present(named: Any) -> Any:
    """The value of an option that names files to read. Raises `InputError` where one is not there,
    before the command imports what would read it. A text with a colon may be a spec."""
    for each in named if isinstance(named, list) else (named,):
        if each is None or ":" in str(each):
            continue
        with suppress(OSError, ValueError):  # reading it says what is wrong
            try:
                Path(each).stat()
            except FileNotFoundError:
                raise InputError("no such file", file=each, remedy="check the path") from None
    return named


CONFIG_PATH = Path("/etc/sar-agent/sar-agent.toml")
ConfigOption = Annotated[
    Path,
    typer.Option(
        "--config",
        envvar="SAR_AGENT_CONFIG",
        help="configuration file; `sar-agent config show` prints every key",
    ),
]
FabricOption = Annotated[
    str,
    typer.Option(
        "--fabric",
        callback=present,
        help=f"the fabric: a file ({', '.join(extension_names(FORMATS))}) or a "
        "generated one: xgft:3;12,12,12;1,12,12, dragonfly:a=16,p=8,h=8, torus:8x8x8,hosts=4, "
        "hyperx:8x12,hosts=7 or slimfly:5,hosts=4",
    ),
]
JobsOption = Annotated[
    str,
    typer.Option(
        "--jobs",
        callback=present,
        help="the running jobs: output of squeue (JSON or pipe-separated), a job-to-terminal map, "
        "or synthetic jobs: mix:SEED (scattered at random), mix:SEED,placed=tree (placed as "
        "Slurm's topology/tree does) or blocks:30,7,50 (these sizes on consecutive hosts)",
    ),
]
EngineOption = Annotated[
    str, typer.Option("--engine", help="routing engine; `sar-agent engines` lists them")
]
PartitionsOption = Annotated[
    Path | None,
    typer.Option(
        "--partitions",
        callback=present,
        help="InfiniBand partitions for the pftree engines: a policy file (TOML) or OpenSM's "
        "partitions.conf",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="print one JSON object instead of text")]


def print_json(result: dict[str, Any]) -> None:
    """Prints one object on one line, so that `| jq` and line-wise tools both work."""
    typer.echo(json.dumps(result))


def print_answer(result: dict[str, Any], words: str, *, as_json: bool) -> None:
    """Prints the object, or what it means in words."""
    typer.echo(json.dumps(result) if as_json else words)


def read_fabric(spec: str) -> Fabric:
    """The fabric of `--fabric`. Raises `InputError` if it is not connected."""
    from sar_agent.commands.host_options import load_given
    from sar_agent.fabric.components import require_connected
    from sar_agent.fabric.notes import repeated_notes

    announce_compiling()
    fabric = load_given(spec)
    require_connected(fabric)
    for each in repeated_notes(fabric):
        note(f"note: {fabric.name}: {each}")
    return fabric


def read_mix(spec: str, fabric: Fabric) -> JobMix:
    """The multi-switch jobs of `--jobs`. Hosts that the fabric does not have are named on stderr
    and left out."""
    return read_jobs(spec, fabric)[1]


def read_jobs(spec: str, fabric: Fabric) -> tuple[tuple[JobRecord, ...], JobMix]:
    """All jobs of `--jobs` (none for synthetic ones), and the multi-switch jobs as `read_mix`."""
    from sar_agent.demand.endpoints import mix_of_records, mix_of_spec
    from sar_agent.jobs.synthetic import FORMS
    from sar_agent.slurm.job_files import read_jobs_file

    if spec.startswith(FORMS):
        return (), _noted(fabric, mix_of_spec(spec, fabric))
    records = read_jobs_file(Path(spec))
    mapped = mix_of_records(fabric, records)
    if not records:
        note(f"note: {spec} has no running job; what follows is for an idle cluster")
    elif not any(host in fabric.hosts for record in records for host in record.hosts):
        note(
            f"note: no host of the {plural(len(records), 'job')} in {spec} is in the fabric; are "
            "both of one "
            "cluster, with the same host names?"
        )
    elif not mapped.mix.jobs:
        note(f"note: none of the {plural(len(records), 'job')} in {spec} spans two leaf switches")
    if mapped.unknown_hosts:
        listed = ", ".join(sorted(mapped.unknown_hosts)[:5])
        dots = " …" if len(mapped.unknown_hosts) > 5 else ""
        note(
            f"{plural(len(mapped.unknown_hosts), 'host of jobs is', 'hosts of jobs are')} not in "
            f"the fabric and left out: {listed}{dots}"
        )
    return records, _noted(fabric, mapped.mix)


def _noted(fabric: Fabric, mix: JobMix) -> JobMix:
    """The mix, after a note on its rails where it has any."""
    from sar_agent.demand.endpoints import rail_note

    if said := rail_note(fabric, mix):
        note(f"note: {said}")
    return mix


def read_partitions(path: Path | None, fabric: Fabric, mix: JobMix) -> Partitions | None:
    """The partitions of a file; notes about doubtful entries go to stderr."""
    if path is None:
        return None
    from sar_agent.jobs.partition_policy import read_partitions as read

    partitions, notes = read(path, fabric, mix)
    for doubt in notes[:5]:
        note(f"note: {doubt}")
    if len(notes) > 5:
        note(f"note: … and {len(notes) - 5} more")
    return partitions


def read_routes(path: Path, fabric: Fabric) -> Routes:
    """The routes of a folder that `route --out` wrote, or of a dump. A note goes to stderr if they
    were computed for another state of the fabric."""
    from sar_agent.formats.read_tables import read_tables

    routes = read_tables(path, fabric, lambda left: note(f"note: {left}"))
    if routes.fabric_digest != fabric.digest:
        note(f"note: {path} was made for other nodes or cables than {fabric.name} has")
    return routes


def peak_rss_mb() -> float:
    """Largest resident set size of this process so far, in MB (2**20 bytes)."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
