"""The status command: the routes that the agent wants and those in force, side by side."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sar_agent.agent.history import History
from sar_agent.agent.peer import PeerRecord, PeerStore
from sar_agent.agent.quiet import PASSIVE
from sar_agent.agent.source_ages import SourceAge, read_ages
from sar_agent.agent.state import State, StateStore
from sar_agent.config.model import Config
from sar_agent.errors import SarError
from sar_agent.events.ask_counters import read_counters
from sar_agent.fabric.lmc import LmcPlan, lmc_plan_of
from sar_agent.install.generations import Generations
from sar_agent.install.subnet_manager import SmStatus, SubnetManager, load_subnet_manager
from sar_agent.opensm.dump_age import of_date, outdated, written_at
from sar_agent.services.keys.leases import Lease, Leases, words_of
from sar_agent.util.lock_file import holder
from sar_agent.util.plural import plural
from sar_agent.util.set_aside import files_set_aside

DECISIONS = 100
"""Decisions that are read, to see whether they can be."""


@dataclass(frozen=True)
class AgentStatus:
    """`running`: the process that holds the agent's lock, empty where none does."""

    mode: str
    running: str
    wanted: State | None
    in_force: SmStatus | None
    problem: str
    """Why `in_force` is not known."""
    generations: list[int]
    update_mode: str = "fast"
    leases: list[Lease] = field(default_factory=list)
    """Routing keys."""
    events: dict[str, Any] | None = None
    """Messages that the agent received and refused; None where it does not answer."""
    unread: str = ""
    """Why `wanted` is not known."""
    manager: str = "OpenSM"
    """The subnet manager's name."""
    dump: str = ""
    """The file that tells the tables in force; empty where the manager itself does."""
    dump_written_at: float = 0.0
    """Unix seconds; 0.0 where there is no such file."""
    dump_outdated: str = ""
    """Why it may not tell them any more."""
    set_aside: list[str] = field(default_factory=list)
    """Damaged files that were renamed, in the state folder."""
    history_damage: str = ""
    """What of the last decisions cannot be read."""
    sources: dict[str, SourceAge] = field(default_factory=dict)
    """How old the running agent's sources are; empty where none runs."""
    peer: PeerRecord | None = None
    """What the other machine answered last; None where there is none."""

    @property
    def stale(self) -> str:
        """Which of them are stale, in a sentence; empty where none is."""
        old = [source for source, age in self.sources.items() if age.stale]
        which = f"{', '.join(old)} {'is' if len(old) == 1 else 'are'}"
        why = f"{which} stale: {self.sources[old[0]].stale}" if old else ""
        return f"{why}, and {len(old) - 1} more" if len(old) > 1 else why

    @property
    def ours(self) -> bool:
        """Whether the wanted routes are in force, and all switches have confirmed them."""
        return bool(
            self.wanted
            and self.in_force
            and self.in_force.settled
            and self.in_force.ours
            and self.in_force.identity == self.wanted.identity
        )

    @property
    def lids(self) -> LmcPlan | None:
        """What OpenSM's LMC means for this subnet; None where OpenSM does not answer."""
        status = self.in_force
        if status is None:
            return None
        return lmc_plan_of(status.hca_ports, status.switches, status.lmc)

    def json(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "mode": self.mode,
            "running": self.running,
            "ours": self.ours,
            "wanted": self.wanted and _shown(self.wanted),
            "in_force": self.in_force and dict(self.in_force.details),
            "problem": "; ".join(filter(None, (self.unread, self.problem))),
            "generations": self.generations,
            "update_mode": self.update_mode,
            "lids": self.lids and self.lids.json(),
            "keys": [
                lease.model_dump(mode="json", exclude={"pairs", "hosts"}) for lease in self.leases
            ],
            "events": self.events,
            "dump": self.dump,
            "dump_written_at": self.dump_written_at,
            "dump_outdated": self.dump_outdated,
            "set_aside": self.set_aside,
            "history_damage": self.history_damage,
            "peer": self.peer and self.peer.model_dump(mode="json"),
            "sources": {name: asdict(age) for name, age in self.sources.items()},
        }

    def _peer(self, peer: PeerRecord) -> str:
        if self.in_force and self.in_force.role in PASSIVE:
            return "this machine gets an archive from the other one, and sends none"
        ago = f"{time.time() - peer.same_at:.0f} s ago" if peer.same_at else "never"
        if peer.problem:
            return f"{peer.problem}\n           it last had this state {ago}"
        if not peer.same_at:
            return "has had no archive yet: does sar-agent-archive.service run?"
        return f"{peer.host} has generation {peer.generation}, as here {ago}"

    def words(self) -> str:
        """For people."""
        lines = [f"agent      {self.running or 'not running'} ({self.mode} mode)"]
        if self.wanted:
            when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.wanted.installed_at))
            lines.append(
                f"wanted     generation {self.wanted.generation} of engine {self.wanted.engine} "
                f"for {len(self.wanted.jobs)} multi-switch jobs, installed {when}"
            )
            if self.wanted.lanes:
                lines.append(f"lanes      {self.wanted.lanes}")
            if self.wanted.hold and self.wanted.held:
                end = self.wanted.hold.over_at
                left = end and f"{max(0.0, end - time.time()) / 60:.0f} min"
                lines.append(f"held       {left or 'until `sar-agent resume`'}")
        else:
            lines.append(f"wanted     {self.unread or 'nothing was installed yet'}")
        if status := self.in_force:
            lines.append(
                f"in force   engine {status.engine}"
                + (f", generation {status.generation}" * bool(status.generation))
                + (
                    f" with {plural(status.amendments, 'repair')} of its own"
                    * bool(status.amendments)
                )
                + f", on {plural(status.switches, 'switch', 'switches')} and "
                + plural(status.hca_ports, "port")
                + f" ({self.manager} {status.role}, process {status.process})"
            )
            if status.unsettled:
                lines.append(f"           not settled: {status.unsettled}")
            if status.drops:
                lines.append(f"           {status.drops}")
            if status.last_error:
                lines.append(f"           {status.last_error}")
        else:
            lines.append(f"in force   not known: {self.problem}")
        if self.dump and self.dump_written_at:
            lines.append(f"dump       {self.dump}: the tables are {of_date(self.dump_written_at)}")
            if self.dump_outdated:
                lines[-1] = f"dump       {self.dump_outdated}"
        if known := [(name, age) for name, age in self.sources.items() if age.at]:
            said = (f"{n} {_ago(age.at)}{' (stale)' * bool(age.stale)}" for n, age in known)
            lines.append(f"sources    {', '.join(said)}")
        # What is off, or has not happened, has no line.
        if (lids := self.lids) and status and status.lmc:
            lines.append(f"LIDs       {lids.words()}")
            lines.append(f"keys       {words_of(self.leases)}")
        if self.events is not None:
            if self.events["events"] or self.events["refused"]:
                lines.append(f"events     {_counted(self.events)}")
            update = self.events.get("update") or {}
            if update and (update["phase"] != "idle" or update["subscribers"]):
                lines.append(f"updates    {_phase(self.update_mode, update)}")
        if self.history_damage:
            lines.append(f"history    {self.history_damage}")
        if self.set_aside:
            files = ", ".join(self.set_aside)
            lines.append(f"damaged    {files}: renamed and not used; remove when looked at")
        if self.peer:
            lines.append(f"peer       {self._peer(self.peer)}")
        kept = ", ".join(map(str, self.generations)) or "none"
        return "\n".join([*lines, f"kept       generations {kept}"])


def read_agent_status(config: Config, manager: SubnetManager | None = None) -> AgentStatus:
    """Ask the subnet manager and read the disk; fails for neither of them. `manager`: instead of
    the configured one."""
    folder = config.agent.state_dir
    manager = manager or load_subnet_manager(config)
    running = holder(folder, "agent.lock")
    status, problem, wanted, unread = None, "", None, ""
    observes = config.agent.mode == "observe"
    try:
        status = manager.status()
    except SarError as error:
        problem = str(error)
        if observes and config.opensm.lfts_dump:
            problem += f"; in observe mode the agent reads {config.opensm.lfts_dump} instead"
    try:
        wanted = StateStore(folder).load()
    except SarError as error:
        unread = str(error)
    dump = status.dump if status else config.opensm.lfts_dump if observes else ""
    at = status.built_at if status else written_at(Path(dump)) if dump else 0.0
    old = outdated(dump, at, ours=bool(status and status.ours)) if dump and at else ""
    return AgentStatus(
        config.agent.mode,
        running,
        wanted,
        status,
        problem,
        Generations(folder).numbers(),
        config.update.mode,
        list(Leases(folder)),
        read_counters(config.events.socket_path(config.agent.run_dir)),
        unread,
        manager.name,
        dump,
        at,
        old,
        files_set_aside(folder),
        _history_damage(folder),
        read_ages(config.agent.run_dir) if running else {},
        (PeerStore(folder).load() or PeerRecord()) if config.agent.peer else None,
    )


def _history_damage(folder: Path) -> str:
    history = History(folder)
    try:
        history.last(DECISIONS)
    except SarError as error:
        return str(error)
    return history.damage


def _shown(state: State) -> dict[str, Any]:
    """As on disk, without a hold that is over."""
    return (state if state.held else state.model_copy(update={"hold": None})).model_dump(
        mode="json"
    )


def _ago(at: float) -> str:
    seconds = max(0.0, time.time() - at)
    for most, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if seconds < most:
            return f"{seconds / unit:.0f} {name} ago"
    return f"{seconds / 86400:.0f} days ago"


def _counted(events: dict[str, Any]) -> str:
    def parts(counts: dict[str, int]) -> str:
        return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"

    return f"{parts(events['events'])}; refused: {parts(events['refused'])}"


def _phase(mode: str, update: dict[str, Any]) -> str:
    number = f" of update {update['update']}" if update["phase"] != "idle" else ""
    return (
        f"mode {mode}, phase {update['phase']}{number}; {update['subscribers']} subscribers of "
        f"{plural(update['jobs'], 'job')}, {update['sheltered']} on LID offset 1"
    )
