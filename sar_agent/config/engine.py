"""The options of routing engines: name, type, default, bounds and description, each declared once.

`AgentConfig` inherits `EngineSettings`, so each of these is a key of the TOML file; `sar-agent
route` makes a command-line option of every field of `Options` (`commands/engine_options.py`). This
module imports neither numpy nor pydantic, since `--help` reads it. For the same reason its
annotations are objects, not strings.
"""

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, Le, doc

if TYPE_CHECKING:
    from sar_agent.jobs.partitions import Partitions

Objective = Literal["load", "routes"]


@dataclass(frozen=True)
class EngineSettings:
    """What a site may configure for any engine."""

    seed: Annotated[
        int, Ge(0), doc("seed of the engines that draw random numbers; the others ignore it")
    ] = 0
    objective: Annotated[
        Objective,
        doc(
            "what sar-plus minimises: load is the largest load of a link, routes the largest"
            " effective EFI (routes of one job over one link)"
        ),
    ] = "load"
    target: Annotated[
        float,
        Ge(1),
        Le(2),
        doc(
            "sar-plus makes no exception for a load below 1, nor below this many times the least"
            " that is possible: 1.02 moves a fifth more entries than 1.05"
        ),
    ] = 1.02
    max_lanes: Annotated[
        int,
        Ge(1),
        Le(15),
        doc(
            "largest number of virtual lanes that routes may use; more than one needs `qos TRUE` in"
            " opensm.conf"
        ),
    ] = 1
    hosts_use_path_records: Annotated[
        bool,
        doc(
            "whether all hosts take the service level from path records (Open MPI does not unless "
            "told to): with more than one lane, lanes are then chosen by path, else hop by hop"
        ),
    ] = False
    best_effort: Annotated[
        bool,
        doc(
            "where the lanes are not enough: take the Up*/Down* paths of updn in one lane whatever "
            "they load a link with, instead of refusing the fabric above 1.3 times"
        ),
    ] = False
    reserve_lane: Annotated[
        bool,
        doc(
            "with an LMC above 0: keep one of these lanes free for LID offset 1; a second one where"
            " max_lanes is 1"
        ),
    ] = True
    spread_lanes: Annotated[
        bool, doc("where more than one lane is needed: spread the traffic over all of them")
    ] = False


@dataclass(frozen=True)
class Options(EngineSettings):
    """What a caller may ask of any engine."""

    lmc: Annotated[int, Ge(0), Le(7), doc("LMC: routes may use 2**LMC LID offsets")] = 0
    pattern: Annotated[
        str,
        doc(
            "traffic pattern of every job, for colored, ark and nrk: shift:3, ring, … or a file"
            " (docs/routing-keys.md); without one, ark and nrk use what each job says of itself"
        ),
    ] = ""
    combine: Annotated[
        float,
        Ge(0),
        Le(1),
        doc("A of Equation 2 for pftree-combined: 1 is pftree-ext alone, 0 is pftree-wt alone"),
    ] = 0.5
    partitions: "Partitions | None" = None
    """InfiniBand partitions, for the pftree engines."""

    @classmethod
    def of(cls, settings: EngineSettings) -> "Options":
        """The options that a site has configured."""
        names = [field.name for field in dataclasses.fields(EngineSettings)]
        return cls(**{name: getattr(settings, name) for name in names})
