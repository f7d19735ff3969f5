"""The agent's settings: one typed model of the TOML file.

Every key has a default that is right for a usual site, so an empty file is a valid one; an
unknown key is an error, because a typo must not silently keep a default. All errors are told at
once, each with its key, the value that was given and what to write instead.
"""

from __future__ import annotations

import json
import reprlib
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from sar_agent.config.events import EventsConfig
from sar_agent.config.keys import KeysConfig
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
from sar_agent.errors import InputError, SarError
from sar_agent.fabric.hostnames import HOST_PATTERN, VENDOR_NAMES, HostMapper
from sar_agent.jobs.record import RUNNING_STATES, STATES

DEFAULT_PATH = Path("/etc/sar-agent.toml")


class AgentConfig(Section):
    """The loop."""

    mode: Literal["observe", "install"] = Field(
        default="observe", description="observe touches nothing and shows numbers; install reroutes"
    )
    engine: Word = Field(
        default="sar-plus", description="routing engine, one of `sar-agent engines`"
    )
    objective: Literal["load", "routes"] = Field(
        default="load",
        description="what sar-plus makes least: the largest load, or the largest effective EFI",
    )
    seed: int = Field(default=0, ge=0, description="for engines that draw")
    partitions: str = Field(
        default="",
        description='for pftree…: a policy file (TOML), or OpenSM\'s partitions.conf; "" is none',
    )
    lanes: Literal["hop", "path"] = Field(
        default="hop",
        description="where one lane is not enough: hop chooses by ports, where that can be, and "
        "asks nothing of hosts; path by service levels that hosts must take from path records",
    )
    max_lanes: int = Field(
        default=8, ge=1, le=15, description="virtual lanes that plans may use; a site may need some"
    )
    best_effort: bool = Field(
        default=False,
        description="where they do not suffice: Up*/Down* paths for the rest, instead of no plan",
    )
    reserve_lane: bool = Field(
        default=True, description="with LMC above 0 one of them is kept for LID offset 1"
    )
    spread_lanes: bool = Field(
        default=False, description="where more than one is needed: spread traffic over all of them"
    )
    interval_seconds: Annotated[float, Field(ge=0.1, le=86400)] = Field(
        default=30.0, description="time between two looks at Slurm"
    )
    settle_seconds: Seconds = Field(
        default=1.0,
        description="wait after something moved in the fabric, so that a burst is one reroute",
    )
    min_job_age_seconds: Seconds = Field(
        default=0.0, description="jobs younger than this do not cause a reroute"
    )
    debounce_seconds: Seconds = Field(
        default=0.5,
        description="wait after an event until no other came for so long, so that a burst of job"
        " starts is one look at Slurm; 0 looks at once",
    )
    debounce_most_seconds: Seconds = Field(
        default=3.0, description="but look this long after the first event of a burst"
    )
    min_install_seconds: Seconds = Field(
        default=5.0,
        description="least time between two installs because of jobs; what OpenSM or the fabric"
        " call for never waits",
    )
    min_gain: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.0,
        description="how much less the largest load (or effective EFI, by objective) must become"
        " for other jobs to be worth an install before max_staleness_seconds: 0.1 is a tenth",
    )
    max_staleness_seconds: Seconds = Field(
        default=60.0, description="other jobs are installed for after this long, whatever the gain"
    )
    tries: int = Field(
        default=3,
        ge=1,
        le=10,
        description="plans made at once when the fabric changes under a load",
    )
    backoff_max_seconds: Seconds = Field(
        default=600.0, description="longest pause after the same reroute failed again and again"
    )
    tend_seconds: Seconds = Field(
        default=60.0,
        description="quiet time after which rerouted tables are held against a full recomputation"
        " (ten times as long where it never is quiet); 0 is never",
    )
    tend_gain: Annotated[float, Field(ge=0, le=10)] = Field(
        default=0.02, description="how much better others must be to replace the present ones"
    )
    generations_kept: int = Field(
        default=5, ge=2, le=1000, description="routes files kept for `sar-agent rollback`"
    )
    state_dir: Absolute = Field(
        default=Path("/var/lib/sar-agent"), description="state, history, kept generations"
    )
    run_dir: Absolute = Field(
        default=Path("/run/sar-agent"),
        description="routes.sar and the job-to-terminal map; the plugin's option dir",
    )
    metrics_address: Address = Field(
        default="127.0.0.1:9777", description='where Prometheus scrapes; "" is nowhere'
    )

    @model_validator(mode="after")
    def _staleness_holds(self) -> AgentConfig:
        for name in ("min_install_seconds", "debounce_most_seconds"):
            if (value := getattr(self, name)) > self.max_staleness_seconds:
                raise ValueError(
                    f"{name} = {value:g} is more than max_staleness_seconds = "
                    f"{self.max_staleness_seconds:g}; make it less"
                )
        return self

    @property
    def routes_path(self) -> Path:
        """The file that the plugin loads."""
        return self.run_dir / "routes.sar"

    @property
    def metrics_host_port(self) -> tuple[str, int] | None:
        """None where there are to be no metrics."""
        return host_port(self.metrics_address)


class SlurmConfig(Section):
    """Where jobs come from."""

    source: Literal["squeue", "slurmrestd", "pyslurm"] = Field(
        default="squeue", description="who tells the queue; pyslurm wants sar-agent[pyslurm]"
    )
    squeue: Command = Field(default=["squeue"], description="the command and its first words")
    slurmrestd_socket: Absolute = Field(
        default=Path("/run/slurmrestd/slurmrestd.sock"), description="slurmrestd's Unix socket"
    )
    slurmrestd_user: str = Field(
        default="", description='for a JWT: the user it is of; "" is the user the agent runs as'
    )
    slurmrestd_jwt_file: str = Field(
        default="",
        description='a file with the JWT, read at each look; "": slurmrestd knows us by the socket',
    )
    deadline_seconds: Deadline = Field(default=10.0, description="for one look, retries included")
    states: list[str] = Field(
        default=sorted(RUNNING_STATES), description="job states that count as running"
    )
    partition_hints: dict[str, str] = Field(
        default={},
        description="traffic of jobs that give no hint, by partition: "
        '{ debug = "weight=0.1" } is a tenth of full speed',
    )
    topology_conf: str = Field(
        default="/etc/slurm/topology.conf",
        description='Slurm\'s leaf switches; "" or a missing file: those of the fabric',
    )

    @field_validator("states")
    @classmethod
    def _known_states(cls, value: list[str]) -> list[str]:
        if unknown := sorted(set(value) - STATES):
            raise ValueError(f"{', '.join(unknown)}: no job state; there are {_list(STATES)}")
        return value


class FabricConfig(Section):
    """Where the fabric comes from, and who is who in it."""

    command: Command = Field(
        default=["ibnetdiscover"], description="prints the fabric, where the plugin is not asked"
    )
    file: str = Field(
        default="",
        description="read this ibnetdiscover output, .net or subnet.lst instead of the command",
    )
    deadline_seconds: Deadline = Field(default=60.0, description="for the command")
    refresh_seconds: Seconds = Field(
        default=600.0,
        description="look again at least this often; changes that OpenSM tells of are at once",
    )
    environment: dict[str, str] = Field(default={}, description="for the command, e.g. LD_PRELOAD")
    host_pattern: str = Field(
        default=HOST_PATTERN,
        description="regular expression of node descriptions; groups host, hca",
    )
    vendor_names: list[str] = Field(
        default=list(VENDOR_NAMES), description="globs of descriptions that hold no host's name"
    )
    storage_hosts: list[str] = Field(default=[], description="globs of host names")
    other_hosts: list[str] = Field(default=[], description="globs: login, management, …")
    short_names: bool = Field(default=True, description="cut n001.cluster.org to n001")

    @field_validator("host_pattern")
    @classmethod
    def _pattern(cls, value: str) -> str:
        try:
            HostMapper(host_pattern=value)
        except InputError as error:
            raise ValueError(str(error).removeprefix("host_pattern: ")) from error
        return value

    @property
    def mapper(self) -> HostMapper:
        """From node descriptions to hosts, as configured."""
        return HostMapper(
            self.host_pattern,
            tuple(self.vendor_names),
            tuple(self.storage_hosts),
            tuple(self.other_hosts),
            self.short_names,
        )


class OpensmConfig(Section):
    """The subnet manager: OpenSM with our plugin, or another that a package brings along."""

    manager: Word = Field(
        default="plugin",
        description="which subnet manager is spoken to: plugin is OpenSM with our plugin; packages "
        "add others (entry point group sar_agent.subnet_managers)",
    )
    bridge_socket: Absolute = Field(
        default=Path("/run/sar-agent/bridge.sock"), description="the plugin's socket"
    )
    load_deadline_seconds: Deadline = Field(
        default=90.0, description="for an answer; keep it above the plugin's own deadline (60)"
    )
    poll_seconds: Annotated[float, Field(ge=0.05, le=3600)] = Field(
        default=2.0, description="how often the plugin is asked whether something moved"
    )
    fabric: Literal["", "plugin", "ibnetdiscover"] = Field(
        default="",
        description="who tells the fabric where fabric.file does not: plugin, or ibnetdiscover, "
        'which is fabric.command and needs umad; "" is plugin in install mode, ibnetdiscover in '
        "observe mode",
    )
    lfts_dump: str = Field(
        default="",
        description="observe without plugin: OpenSM's opensm-lfts.dump, or what dump_fts printed",
    )


class Config(Section):
    """The whole file."""

    agent: AgentConfig = Field(default_factory=lambda: AgentConfig())
    slurm: SlurmConfig = Field(default_factory=lambda: SlurmConfig())
    fabric: FabricConfig = Field(default_factory=lambda: FabricConfig())
    opensm: OpensmConfig = Field(default_factory=lambda: OpensmConfig())
    events: EventsConfig = Field(default_factory=lambda: EventsConfig())
    keys: KeysConfig = Field(default_factory=lambda: KeysConfig())
    update: UpdateConfig = Field(default_factory=lambda: UpdateConfig())

    @property
    def fabric_from_plugin(self) -> bool:
        """Whether OpenSM's plugin is asked for the fabric."""
        asked = self.opensm.fabric or ("plugin" if self.agent.mode == "install" else "")
        return asked == "plugin" and not self.fabric.file


class ConfigError(SarError):
    """All that is wrong with a configuration; `problems` has a sentence for each key."""

    exit_code = 2

    def __init__(self, file: str | Path, problems: list[str]) -> None:
        self.problems = problems
        many = "" if len(problems) == 1 else f"{len(problems)} problems\n  "
        super().__init__(f"{file}: {many}" + "\n  ".join(problems))


def load_config(path: str | Path = DEFAULT_PATH) -> Config:
    """The settings in `path`. Raises `ConfigError`."""
    path = Path(path)
    try:
        return parse_config(path.read_text(encoding="utf-8"), path)
    except OSError as error:
        raise ConfigError(
            path, [f"cannot be read ({error.strerror}); name it with --config"]
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(path, [f"is no UTF-8 text ({error.reason})"]) from error


def parse_config(text: str, file: str | Path = "configuration") -> Config:
    """Like `load_config`, from text."""
    try:
        # Paths are strings in TOML, and whole numbers will do for seconds; strict takes neither
        # from Python objects but does from JSON, which has no other way to say them.
        return Config.model_validate_json(json.dumps(tomllib.loads(text), default=str))
    except ValidationError as error:
        raise ConfigError(file, [_sentence(one) for one in error.errors()]) from error
    except (ValueError, RecursionError) as error:  # tomllib's own, and of a number without end
        raise ConfigError(file, [f"is no TOML: {error}"]) from error


_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = _brief.maxlong = (
    100  # lists in lists: a plain repr does not end
)


def _sentence(error: Any) -> str:
    """`agent.mode = 'foo': …; remedy`."""
    key = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{key}: no such key; {_known(error['loc'])}"
    said = error["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    given = _brief.repr(error["input"])
    given = given if len(given) <= 80 else given[:77] + "…"
    wanted = said if error["type"] == "value_error" else f"should be {said}"
    return f"{key} = {given}: {wanted}" + ("" if ";" in said else f"; {_purpose(error['loc'])}")


def _known(where: tuple[Any, ...]) -> str:
    section: type[BaseModel] = Config
    for part in where[:-1]:
        found = section.model_fields[str(part)].annotation
        section = found if isinstance(found, type) and issubclass(found, BaseModel) else section
    close = [name for name in section.model_fields if name[:3] == str(where[-1])[:3]]
    return (
        f"did you mean {' or '.join(close)}?"
        if close
        else f"there are {_list(section.model_fields)}"
    )


def _purpose(where: tuple[Any, ...]) -> str:
    """What the key is for, from its description."""
    if len(where) < 2:
        return "this is a section: write [" + str(where[0]) + "] above its keys"
    field = Config.model_fields[str(where[0])].annotation
    assert isinstance(field, type) and issubclass(field, BaseModel)
    known = field.model_fields[str(where[1])]
    return f"the key is for: {known.description} (default {_shown(known.get_default())})"


def _shown(default: object) -> str:
    return repr(str(default) if isinstance(default, Path) else default)


def _list(names: Any) -> str:
    return ", ".join(sorted(names))
