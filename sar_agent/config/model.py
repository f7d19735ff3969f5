"""The agent's settings: one typed model of the TOML file.

Every key has a default that suits a usual site, so an empty file is valid. An unknown key is an
error, because a typo must not silently keep a default. All errors are reported at once, each with
its key, the given value and what to write instead. `deploy/sar-agent.toml` is generated from this
model (`python -m docs.reference_tools`).
"""

from __future__ import annotations

import json
import reprlib
import tomllib
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import DocInfo
from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo

from sar_agent.config.cables import CablesConfig
from sar_agent.config.engine import EngineSettings
from sar_agent.config.events import EventsConfig
from sar_agent.config.gone_keys import take_gone_keys
from sar_agent.config.keys import KeysConfig
from sar_agent.config.opensm import OpensmConfig
from sar_agent.config.slurm import SlurmConfig
from sar_agent.config.types import (
    Absolute,
    Address,
    Command,
    Deadline,
    Seconds,
    Section,
    Word,
    host_port,
)
from sar_agent.config.update import UpdateConfig
from sar_agent.config.watch import WatchConfig
from sar_agent.errors import InputError, SarError
from sar_agent.fabric import FORMATS
from sar_agent.fabric.hostnames import HOST_PATTERN, VENDOR_NAMES, HostMapper
from sar_agent.fabric.slurm_names import SlurmNames
from sar_agent.util.extensions import extension_names

DEFAULT_PATH = Path("/etc/sar-agent/sar-agent.toml")


BEFORE = "before"
"""`agent.baseline`: the tables that the first install replaced."""


class AgentConfig(Section, EngineSettings, frozen=True):
    """The agent: how it routes, and when it looks and acts."""

    mode: Literal["observe", "install"] = Field(
        default="observe",
        description="what the agent may do: observe changes nothing and shows what routes would "
        "achieve, install puts new routes in force",
    )
    engine: Word = Field(
        default="sar-plus", description="routing engine; `sar-agent engines` lists them"
    )
    baseline: str = Field(
        default=BEFORE,
        description="whose tables are measured beside those in force, so that the gain stays "
        "visible: before means those that the first install replaced, or minhop where these are "
        'not known or of another fabric; else the name of an engine. "" measures none',
    )
    explain_names_users: bool = Field(
        default=False,
        description="whether `sar-agent explain` of a job that has ended names the users of the "
        "jobs that shared its links, beside these jobs' numbers",
    )
    ib_partitions_file: str = Field(
        default="",
        description="InfiniBand partitions for the pftree engines: a policy file (TOML), or "
        'OpenSM\'s partitions.conf. "" means none',
    )
    interval_seconds: Annotated[float, Field(ge=0.1, le=86400)] = Field(
        default=30.0, description="time between two readings of Slurm's queue"
    )
    fabric_debounce_seconds: Seconds = Field(
        default=0.2,
        description="time to wait after a change in the fabric, so that a burst of changes causes "
        "one reroute",
    )
    min_job_age_seconds: Seconds = Field(
        default=0.0, description="jobs that have run for less than this do not cause a reroute"
    )
    debounce_seconds: Seconds = Field(
        default=5.0,
        description="read the queue once no event from Slurm's hooks has arrived for this long, so "
        "that a burst of job starts causes one reading. 0 reads at once",
    )
    debounce_max_seconds: Seconds = Field(
        default=15.0, description="read the queue at the latest this long after the first event"
    )
    min_install_interval_seconds: Seconds = Field(
        default=60.0,
        description="minimum time between two installs caused by job changes. An install changes "
        "tables under running traffic, so jobs that start in quick succession share one. Changes "
        "of the fabric or of OpenSM are never delayed",
    )
    min_gain: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.05,
        description="gain that justifies an install before max_staleness_seconds: the share of "
        "its time that the collective gains which gains most, less three times what any loses "
        "(of the largest effective EFI, if objective is routes): 0.1 is a tenth. With 0, every "
        "change of the jobs is acted on; else routes of which a new plan gains at most 1 % stay "
        "for good",
    )
    max_staleness_seconds: Seconds = Field(
        default=3600.0,
        description="changed jobs get routes after at most this time, however small the gain. "
        "After this time without any multi-switch job, routes without exceptions are installed",
    )
    reoptimise_seconds: Seconds = Field(
        default=60.0,
        description="time after which routes that OpenSM's plugin has repaired are replaced by a "
        "plan; nothing else is recomputed in quiet time. 0 replaces them at once",
    )
    generations_kept: int = Field(
        default=5, ge=2, le=1000, description="number of generations kept for `sar-agent rollback`"
    )
    state_dir: Absolute = Field(
        default=Path("/var/lib/sar-agent"),
        description="folder for state, history, kept generations and the last fabric",
    )
    run_dir: Absolute = Field(
        default=Path("/run/sar-agent"),
        description="folder for routes.sar and the job-to-terminal map; OpenSM's plugin has the "
        "same folder as its option dir",
    )
    peer: list[Word] = Field(
        default=[],
        description="command that runs `sar-agent serve-state` on the machine of a second OpenSM "
        '(docs/ha.md), such as ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", '
        '"sar-agent@sm2"]. Empty if this is the only one',
    )
    metrics_address: Address = Field(
        default="127.0.0.1:9777",
        description='address at which Prometheus scrapes, and of the page. "" serves neither',
    )
    page: Literal["loopback", "any", "off"] = Field(
        default="loopback",
        description="who may read the page at metrics_address, which shows job numbers, hosts and "
        "names of switches: loopback is this machine (a tunnel, or a proxy that asks for a "
        "password), any is everybody who reaches the address",
    )

    @model_validator(mode="after")
    def _staleness_holds(self) -> AgentConfig:
        for name in ("min_install_interval_seconds", "debounce_max_seconds"):
            if (value := getattr(self, name)) > self.max_staleness_seconds:
                raise ValueError(
                    f"agent.{name} = {value:g} is more than agent.max_staleness_seconds = "
                    f"{self.max_staleness_seconds:g}; reduce the one or raise the other"
                )
        return self

    @property
    def routes_path(self) -> Path:
        """The routes file that the plugin loads."""
        return self.run_dir / "routes.sar"

    @property
    def metrics_host_port(self) -> tuple[str, int] | None:
        """Host and port of `metrics_address`; None if no metrics are served."""
        return host_port(self.metrics_address) if self.metrics_address else None


class FabricConfig(Section, frozen=True):
    """The fabric: where it is read, and which node is which host."""

    command: Command = Field(
        default=["ibnetdiscover"],
        description="command that prints the fabric, where OpenSM's plugin does not provide it "
        "(opensm.fabric_source). ibnetdiscover opens /dev/infiniband/umad*",
    )
    file: str = Field(
        default="",
        description="file with the fabric, or folder of ibdiagnet's files, read instead of running "
        "the command, and again when it was written again; a format of "
        + ", ".join(extension_names(FORMATS)),
    )
    deadline_seconds: Deadline = Field(default=60.0, description="time for the command")
    refresh_seconds: Seconds = Field(
        default=600.0,
        description="read the fabric at least this often. Changes that OpenSM reports are read at "
        "once",
    )
    environment: dict[str, str] = Field(
        default={}, description="environment variables for the command, such as LD_PRELOAD"
    )
    host_pattern: str = Field(
        default=HOST_PATTERN,
        description="regular expression for node descriptions, with the groups host and hca",
    )
    vendor_names: list[str] = Field(
        default=list(VENDOR_NAMES),
        description="patterns of node descriptions that contain no host name",
    )
    storage_hosts: list[str] = Field(
        default=[], description="patterns of the host names of storage servers"
    )
    other_hosts: list[str] = Field(
        default=[],
        description="patterns of the host names of login, management and other nodes without jobs",
    )
    short_names: bool = Field(
        default=True, description="shorten host names to their first part: n001.cluster.org to n001"
    )
    slurm_names: list[str] = Field(
        default=[],
        description="SLURM=FABRIC, how Slurm calls a node and how descriptions call it, where "
        "these differ in more than case, domain or -ib0: lists (node[001-144]=c[1-144]) or a * at "
        "each side (node*=ib-*); the first that fits counts",
    )
    job_hcas: list[str] = Field(
        default=[],
        description="patterns of the HCAs (mlx5_[0-11]) or HCA ports (mlx5_0/1) that jobs use, "
        "where hosts have several; all if empty",
    )
    traffic: Literal["", "rail", "alltoall"] = Field(
        default="",
        description="rail: each port of a job's hosts sends to the same port of the others, as "
        "NCCL does, and each rail of a job is planned for as a part of its own; alltoall: to all "
        "ports; empty: rail where the fabric is rail-optimised (each port of a host ends on leaf "
        "switches of its own)",
    )

    @field_validator("host_pattern")
    @classmethod
    def _pattern(cls, value: str) -> str:
        try:
            HostMapper(host_pattern=value)
        except InputError as error:
            raise ValueError(str(error).removeprefix("host_pattern: ")) from error
        return value

    @field_validator("slurm_names")
    @classmethod
    def _pairs(cls, value: list[str]) -> list[str]:
        try:
            SlurmNames(value)
        except InputError as error:
            raise ValueError(str(error).removeprefix("slurm_names: ")) from error
        return value

    @property
    def mapper(self) -> HostMapper:
        """Maps node descriptions to hosts, as configured."""
        return HostMapper(
            **{
                key.name: getattr(self, key.name)
                for key in fields(HostMapper)
                if key.name in FabricConfig.model_fields
            }
        )


class Config(Section, frozen=True):
    """The whole configuration file."""

    agent: AgentConfig = Field(default_factory=lambda: AgentConfig())
    slurm: SlurmConfig = Field(default_factory=lambda: SlurmConfig())
    fabric: FabricConfig = Field(default_factory=lambda: FabricConfig())
    cables: CablesConfig = Field(default_factory=lambda: CablesConfig())
    opensm: OpensmConfig = Field(default_factory=lambda: OpensmConfig())
    events: EventsConfig = Field(default_factory=lambda: EventsConfig())
    keys: KeysConfig = Field(default_factory=lambda: KeysConfig())
    update: UpdateConfig = Field(default_factory=lambda: UpdateConfig())
    watch: WatchConfig = Field(default_factory=lambda: WatchConfig())

    @property
    def fabric_from_plugin(self) -> bool:
        """Whether the fabric comes from OpenSM's plugin."""
        default = "plugin" if self.agent.mode == "install" and self.opensm.method != "file" else ""
        source = self.opensm.fabric_source or default
        return source == "plugin" and not self.fabric.file


class ConfigError(SarError):
    """All errors of a configuration; `problems` has a sentence for each key."""

    exit_code = 2

    def __init__(self, file: str | Path, problems: list[str], usable: Config | None = None) -> None:
        self.problems = problems
        self.usable = usable
        """The settings without the keys that have problems."""
        count = "" if len(problems) == 1 else f"{len(problems)} problems\n  "
        super().__init__(f"{file}: {count}" + "\n  ".join(problems))


def load_config(path: str | Path = DEFAULT_PATH) -> Config:
    """Reads the settings in `path`. Raises `ConfigError`."""
    path = Path(path)
    try:
        return parse_config(path.read_text(encoding="utf-8-sig"), path)
    except OSError as error:
        raise ConfigError(
            path, [f"cannot be read ({error.strerror}); name the file with --config"]
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(path, [f"is not UTF-8 text ({error.reason})"]) from error


def parse_config(text: str, file: str | Path = "configuration") -> Config:
    """Reads the settings in a TOML text; `file` is its name in errors. Raises `ConfigError`."""
    try:
        document = tomllib.loads(text)
        take_gone_keys(document)
        try:
            return _validated(document)
        except ValidationError as error:
            problems = [_sentence(detail) for detail in error.errors()]
            raise ConfigError(file, problems, _usable(document, error)) from error
    except (ValueError, RecursionError) as error:  # from tomllib, or of an integer too long
        raise ConfigError(file, [f"is not valid TOML: {error}"]) from error


def _validated(document: dict[str, Any]) -> Config:
    # Strict validation of Python objects rejects strings as paths and integers as seconds. Of
    # JSON, which cannot express them otherwise, it accepts both.
    return Config.model_validate_json(json.dumps(document, default=str))


def _usable(document: dict[str, Any], error: ValidationError) -> Config | None:
    """The settings without the keys that `error` names; None where these do not stand alone."""
    for detail in error.errors():
        section, *key = detail["loc"] or ("",)
        if key and isinstance(keys := document.get(str(section)), dict):
            keys.pop(str(key[0]), None)
        else:
            document.pop(str(section), None)
    with suppress(ValidationError):
        return _validated(document)
    return None


_brief = reprlib.Repr()
# Nested lists: a plain repr of them may be endless.
_brief.maxstring = _brief.maxother = _brief.maxlong = 100


def _sentence(error: Any) -> str:
    """`agent.mode = 'foo': problem; remedy`."""
    key = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{key}: no such key; {_suggestion(error['loc'])}"
    problem: str = error["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if error["type"] == "value_error" and len(error["loc"]) == 1:  # of two keys of a section
        return problem
    value = _brief.repr(error["input"])
    value = value if len(value) <= 80 else value[:77] + "…"
    if error["type"] != "value_error":
        problem = f"should be {problem}"
    remedy = "" if ";" in problem else f"; {_purpose(error['loc'])}"
    return f"{key} = {value}: {problem}{remedy}"


def _suggestion(where: tuple[Any, ...]) -> str:
    """Keys that are spelled like an unknown one, or all keys."""
    section: type[BaseModel] = Config
    for part in where[:-1]:
        found = section.model_fields[str(part)].annotation
        section = found if isinstance(found, type) and issubclass(found, BaseModel) else section
    similar = [name for name in section.model_fields if name[:3] == str(where[-1])[:3]]
    if similar:
        return f"did you mean {' or '.join(similar)}?"
    return f"there are {', '.join(sorted(section.model_fields))}"


def _purpose(where: tuple[Any, ...]) -> str:
    """The description and the default of a key."""
    if len(where) < 2:
        return f"this is a section: write [{where[0]}] above its keys"
    section = Config.model_fields[str(where[0])].annotation
    assert isinstance(section, type) and issubclass(section, BaseModel)
    key = section.model_fields[str(where[1])]
    default = key.get_default()
    default = repr(str(default) if isinstance(default, Path) else default)
    return f"the key means: {description_of(key)} (default {default})"


def description_of(key: FieldInfo) -> str:
    """What a key means: a phrase, in one or more sentences, without the last full stop."""
    documented = [note.documentation for note in key.metadata if isinstance(note, DocInfo)]
    return key.description or "".join(documented)
