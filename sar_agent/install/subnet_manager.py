"""What the agent needs of a subnet manager: the only way to tables, fabric and notices.

There are two implementations: OpenSM with our plugin (`opensm/plugin_manager.py`) and without it
(`opensm/file_manager.py`). A site adds its own as an entry point of the group
`sar_agent.subnet_managers`, a callable that takes the configuration, and names it in
`opensm.method`. Nothing outside an implementation talks to a manager's sockets or reads its dumps.

Tables in force have an identity, which the manager chooses: equal identities mean equal tables of
the agent's. A digest will do. Numbers of plans (`generation`) are the agent's own, for the history
and for people; a manager that keeps them reports them, one that does not reports 0 and serves
everything but five-phase updates.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from sar_agent.config.model import Config
from sar_agent.errors import SarError, Unavailable
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import U8
from sar_agent.formats.routes_file import RoutesFile
from sar_agent.install.plan import Plan
from sar_agent.routing.routes import Routes
from sar_agent.util.extensions import load_extension

GROUP = "sar_agent.subnet_managers"


@dataclass(frozen=True)
class SmStatus:
    """What a subnet manager reports about itself, from memory and at once."""

    engine: str = "none"
    """The routing engine that made the tables in force; "none" before the first routing."""
    ours: bool = False
    """Whether these tables are the agent's, whichever engine of ours computed them."""
    identity: str = ""
    """Identity of these tables where they are the agent's; empty where they are not."""
    generation: int = 0
    """Number of the agent's plan in force; 0 where it is not known, or not the agent's."""
    amendments: int = 0
    """How many times the manager has repaired this plan by itself, after failures; the tables then
    differ from those of the plan, and their identity does, too."""
    repairs_refused: int = 0
    """How many of its repairs it has not installed since it started, as they did not hold."""
    highest_generation: int = 0
    """Highest plan number that the manager has heard of; the next plan is above it."""
    restart_generation: int = 0
    """Number of the plan that a restarted manager would begin with; 0 where it keeps none."""
    install_pending: bool = False
    """Whether an install has begun that is neither finished nor undone (see `recover`)."""
    role: str = "master"
    """`master`, or what this manager is instead; only a master installs."""
    process: int = 0
    """Changes when the manager restarts."""
    state: Literal["starting", "at work", "built"] = "built"
    """starting: nothing was routed yet; at work: tables are computed or sent; built: done."""
    unsettled: str = ""
    """Why the tables in force are not certain, in a sentence: the manager is at work, or switches
    have not confirmed. Empty where all switches have confirmed all of them."""
    unconfirmed_switches: int = 0
    drops: str = ""
    """That packets to some hosts are dropped, and until when; empty where none are."""
    last_error: str = ""
    """Why the newest routes are not in force; empty where they are."""
    unknown_terminals: int = 0
    """Live ports that the routes in force do not know."""
    switches: int = 0
    hca_ports: int = 0
    lmc: int = 0
    sweeps: int = 0
    """Grows when the fabric was discovered again."""
    routings: int = 0
    """How many sets of tables the manager has sent since it started; always 0 where it does not
    count them."""
    topology_changes: int = 0
    """Grows when a discovery found something new."""
    tables_version: Hashable = None
    """Changes whenever the tables that switches have may have changed; None: always read them."""
    sl2vl_tables_sent: int | None = None
    """SL2VL tables that switches were sent for our routes since the process began, one for each
    pair of ports; None where the manager does not count them."""
    head_of_queue_seconds: float = 0.0
    """Longest wait of a packet at the head of a queue; -1: without limit."""
    built_at: float = 0.0
    """Unix seconds of the last routing."""
    dump: str = ""
    """The file that told the tables, which was written at `built_at`; empty where the manager or
    the switches told them."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What else the manager reports, for `sar-agent status --json`."""

    @property
    def settled(self) -> bool:
        """Whether nothing is under way, and the switches have confirmed all tables."""
        return not self.unsettled

    @property
    def fabric_version(self) -> tuple[int, int, int]:
        """Changes when the fabric is worth another reading."""
        return self.process, self.sweeps, self.topology_changes


@dataclass(frozen=True, eq=False)
class InForce:
    """Tables that were read back, on the indices of a fabric."""

    routes: Routes
    """Where a switch has not confirmed: what it was sent last."""
    had: U8 | None
    """uint8[O, D, S]: what switches may have instead, 254 where that is not known; None where all
    is confirmed."""
    digest: str
    """Names these tables to `SubnetManager.install`."""
    file: RoutesFile
    """The same tables by GUID, as the manager reported them."""
    status: SmStatus
    """The manager's status right after the reading."""
    confirmed: bool
    """Whether nothing is under way, and switches have confirmed all tables."""

    @property
    def generation(self) -> int:
        """Number of the plan; 0 where the tables are not the agent's."""
        return self.status.generation

    @property
    def identity(self) -> str:
        """Identity of the tables; empty where they are not the agent's."""
        return self.status.identity


class NotYet(Unavailable):
    """The manager is at work, or switches have not confirmed what they were sent: the tables in
    force are not known, or not all of them. Nothing has failed; a later try may find it done."""


class SmRefused(SarError):
    """The subnet manager did not put a plan in force, and says why in one sentence."""

    def __init__(self, message: str, *, changed: bool = False, pending: bool = False) -> None:
        """`changed`: other tables are in force than the plan was proved from. `pending`: the plan
        may come into force all the same."""
        super().__init__(message)
        self.changed, self.pending = changed, pending


class SubnetManager(Protocol):
    """A subnet manager, as the agent uses it. Subclass it to inherit what can be left out."""

    name: str
    """How log lines and errors call it."""
    calls: bool = False
    """Whether its routing can wait for the agent's routes (`wait_for_call`)."""

    def status(self) -> SmStatus:
        """The manager's report on itself. Raises `SarError` where it does not answer."""

    def fabric(self) -> Fabric:
        """The fabric that the manager has discovered; the same object while nothing changes.
        Raises `SarError`."""

    def routes_in_force(self, fabric: Fabric, *, wait: bool = True) -> InForce:
        """The tables that switches have now, on the indices of `fabric`.

        With `wait`, a manager that is at work is waited for, a few seconds at most; then `NotYet`
        is raised. Without, its answer may be unconfirmed. Raises `SarError` where the tables
        cannot be read."""

    def install(self, plan: Plan, proved_from: str | None) -> InForce:
        """Put `plan` in force in place of the tables whose digest is `proved_from` (None: of any
        tables), read the tables back and compare them with the plan; returns them.

        Raises `SmRefused` where the manager refuses, `NotYet` where it is at work, else `SarError`.
        A manager that restarts must then find the last routes that were confirmed."""

    def wait_for_call(self, answered: int) -> int:
        """Wait, less than a minute, until a routing of the manager waits for the agent's routes,
        because it has none for the fabric. Returns the number of the call, which is not `answered`,
        or 0. During a call the status is `built`: tables and fabric can be read, and an `install`
        answers it. For a thread of its own. Raises `SarError`."""
        return 0

    def decline_call(self, call: int) -> None:
        """Tell the manager that no routes will come for the call. Raises `SarError` where it is
        over."""
        return

    def recover(self) -> str:
        """Finish or undo what an install left behind whose process died or whose deadline passed;
        returns what was done, in a sentence, or nothing. Raises `NotYet` while that is not certain,
        else `SarError`."""
        return ""

    def confirm_restart(self, generation: int, *, compare: bool) -> None:
        """Require that a restart would bring back `generation`, which is in force; with `compare`,
        that its entries are those in force, too. Raises `SarError` where it would not."""

    def notice(self, kind: Literal["unpath", "repath"], update: int, generation: int) -> None:
        """Tell subscribers of a five-phase update to leave LID offset 0, or to return to it.
        Raises `SarError`; a notice may be lost."""
        raise SarError(f"{self.name} sends no notices")


def load_subnet_manager(config: Config) -> SubnetManager:
    """The manager that `opensm.method` names. Raises `InputError` that lists the known ones."""
    make = load_extension(GROUP, config.opensm.method, "subnet manager")
    manager: SubnetManager = make(config)
    return manager
