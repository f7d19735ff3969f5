"""Stand-ins for the agent's outside parties: they are none of the real ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from sar_agent.errors import SarError, Unavailable
from sar_agent.fabric import Fabric
from sar_agent.install.bridge import BridgeStatus, Dumped, Loaded
from sar_agent.install.plan import routes_to_file
from sar_agent.install.routes_file import RoutesFile, read_routes_file, write_routes_file
from sar_agent.jobs import JobMix
from sar_agent.jobs.poll import Poll
from sar_agent.jobs.records import JobRecord
from sar_agent.routing import Options, load_engine


def job(id: str, *hosts: str, start: float | None = None) -> JobRecord:
    return JobRecord(id, hosts, "RUNNING", start=start)


@dataclass
class FakeSource:
    """A queue that says what the test wants; `away` is the sentence of a squeue that fails."""

    records: tuple[JobRecord, ...] = ()
    away: str = ""

    def poll(self) -> Poll:
        if self.away:
            raise Unavailable(self.away)
        return Poll(self.records)


@dataclass
class FakeBridge:
    """An OpenSM with a plugin, as far as the agent sees it. It starts with min-hop tables.

    `refuse` are sentences, one for each load that is refused; `spoil` makes the next dump differ
    from what was loaded; `away` makes it silent."""

    folder: Path
    fabric: Fabric
    away: bool = False
    refuse: list[str] = field(default_factory=list)
    on_refusal: list[object] = field(default_factory=list)
    spoil: bool = False
    engine: str = "minhop"
    generation: int = 0
    last_error: str = ""
    sm_state: str = "master"
    routings: int = 1
    topology_changes: int = 1
    unknown_terminals: int = 0
    loads: list[int] = field(default_factory=list)
    lmc: int = 0
    lmc_esp0: bool = False
    """Whether switches have as many LIDs as hosts, not one."""
    notices: list[tuple[str, int, int]] = field(default_factory=list)
    on_notice: list[Callable[[str, int], None]] = field(default_factory=list)
    """Subscribers: called with the kind and the update."""
    on_load: list[Callable[[], None]] = field(default_factory=list)
    tables: RoutesFile | None = None

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.socket_path = self.folder / "bridge.sock"
        self.socket_path.touch()
        self.fall_back()

    def fall_back(self) -> None:
        """Another engine takes over."""
        routes = load_engine("minhop").route(self.fabric, JobMix.of([]), Options())
        self.tables = routes_to_file(self.fabric, routes, 1)
        self.engine, self.generation = "minhop", 0
        self.routings += 1

    def status(self) -> BridgeStatus:
        self._there()
        return BridgeStatus(
            protocol=2,
            plugin_version="fake",
            opensm_version="fake",
            pid=1,
            sm_state=self.sm_state,
            state="built",
            last_error=self.last_error,
            engine_in_force=self.engine,
            routes_engine="",
            generation_in_force=self.generation,
            generation_loaded=self.generation,
            lmc=self.lmc,
            switches=self.fabric.switches,
            hca_ports=self.fabric.terminals,
            lanes=1,
            unknown_terminals=self.unknown_terminals,
            vanished_terminals=0,
            unconfirmed_switches=0,
            unconfirmed_lft_blocks=0,
            unconfirmed_sl2vl_ports=0,
            head_of_queue_seconds=1.07,
            heavy_sweeps=2,
            topology_changes=self.topology_changes,
            routings=self.routings,
            lft_blocks_confirmed=0,
            last_build_unix=0,
        )

    def load(self, generation: int, proved_from: str | None = None) -> Loaded:
        self._there()
        self.loads.append(generation)
        if self.refuse:
            for act in self.on_refusal:
                act()  # type: ignore[operator]
            raise SarError(self.refuse.pop(0))
        for look in self.on_load:
            look()
        file = read_routes_file(self.folder / "routes.sar")
        assert file.generation == generation
        self.tables = file if self.lmc_esp0 else _switches_have_one_lid(file)
        self.engine, self.generation = "sar", generation
        self.routings += 1
        return Loaded(engine_in_force="sar", generation_in_force=generation, unknown_terminals=0)

    def notice(self, kind: str, update: int, generation: int) -> None:
        self._there()
        self.notices.append((kind, update, generation))
        for subscriber in self.on_notice:
            subscriber(kind, update)

    def dump(self) -> Dumped:
        self._there()
        assert self.tables is not None
        path = self.folder / "in_force.sar"
        write_routes_file(path, self.tables)
        if self.spoil and self.generation:
            changed = self.tables.forwarding.copy()
            changed[0, 0, -1] = 3 - changed[0, 0, -1] if changed[0, 0, -1] < 3 else 1
            spoiled = RoutesFile(**{**vars(self.tables), "forwarding": changed})
            write_routes_file(path, spoiled)
        return Dumped(path=path, digest=hashlib.sha256(path.read_bytes()).hexdigest()[:16])

    def _there(self) -> None:
        if self.away:
            raise Unavailable("OpenSM's plugin does not answer (test)")


def _switches_have_one_lid(file: RoutesFile) -> RoutesFile:
    """What is in force of a file, as the plugin dumps it."""
    both = {"forwarding": file.forwarding, "service_levels": file.service_levels}
    for name, table in both.items():
        if table is not None:
            both[name] = table.copy()
            both[name][1:, :, len(file.terminal_guids) :] = table[0, :, len(file.terminal_guids) :]
    return replace(file, **both)
