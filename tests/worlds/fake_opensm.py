"""Stand-ins for the agent's outside parties: they are none of the real ones."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from sar_agent.errors import Unavailable
from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.routes_file import (
    RoutesFile,
    read_routes_file,
    write_routes_file,
)
from sar_agent.jobs import JobMix
from sar_agent.jobs.record import JobRecord
from sar_agent.jobs.source import Poll
from sar_agent.opensm.plugin_client import (
    DumpAnswer,
    LoadAnswer,
    PluginRefused,
    PluginStatus,
)
from sar_agent.opensm.plugin_manager import PluginManager
from sar_agent.routing import Options, load_engine


def job(id: str, *hosts: str, start: float | None = None) -> JobRecord:
    return JobRecord(id, hosts, "RUNNING", start=start)


@dataclass
class FakeSource:
    """A queue that says what the test wants; `away` is the sentence of a squeue that fails. `busy`
    are nodes with a job; None where that is not known."""

    records: tuple[JobRecord, ...] = ()
    away: str = ""
    busy: frozenset[str] | None = frozenset()

    def poll(self) -> Poll:
        if self.away:
            raise Unavailable(self.away)
        return Poll(self.records)

    def allocated(self, hosts: Collection[str]) -> frozenset[str]:
        if self.busy is None:
            raise Unavailable("sinfo fails (test)")
        return self.busy.intersection(hosts)


State = Literal["starting", "asked", "building", "sending", "built"]


@dataclass
class FakeBridge:
    """An OpenSM with a plugin of protocol 2, as far as the agent sees it. It starts with min-hop
    tables.

    `refuse` are refusals, one for each load: a sentence, or a code and a sentence; `spoil` makes
    the next dump differ from what was loaded; `away` makes it silent. `deaf` are switches (indices
    of the file) that do not answer: they keep what they have, until `confirm`."""

    folder: Path
    fabric: Fabric
    away: bool = False
    refuse: list[str | tuple[str, str]] = field(default_factory=list)
    on_refusal: list[object] = field(default_factory=list)
    spoil: bool = False
    deaf: tuple[int, ...] = ()
    state: State = "built"
    head_of_queue: float = 0.0
    """Seconds."""
    built_at: float = 0.0
    """Unix seconds."""
    engine: str = "minhop"
    generation: int = 0
    amendments: int = 0
    """Repairs of that generation by the plugin itself."""
    last_error: str = ""
    sm_state: str = "master"
    routings: int = 1
    topology_changes: int = 1
    unknown_terminals: int = 0
    loads: list[int] = field(default_factory=list)
    lmc: int = 0
    lmc_esp0: bool = False
    """Whether switches have as many LIDs as hosts, not one."""
    lids: int = 0
    """Another number: LIDs were assigned again."""
    sl2vl_tables: int = 0
    pid: int = 1
    notices: list[tuple[str, int, int]] = field(default_factory=list)
    on_notice: list[Callable[[str, int], None]] = field(default_factory=list)
    """Subscribers: called with the kind and the update."""
    on_load: list[Callable[[], None]] = field(default_factory=list)
    """What happens while a load waits for OpenSM."""
    tables: RoutesFile | None = None
    """As sent last; `had` where a switch has not confirmed."""

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.socket_path = self.folder / "bridge.sock"
        self.socket_path.touch()
        self.fall_back()

    def fall_back(self) -> None:
        """Another engine takes over."""
        routes = load_engine("minhop").route(self.fabric, JobMix.of([]), Options())
        self.tables = routes_to_file(self.fabric, routes, 1)
        self.engine, self.generation, self.amendments = "minhop", 0, 0
        self._routed()

    def repair(self, fabric: Fabric) -> None:
        """The plugin repairs the routes in force for what is left of the fabric."""
        assert self.tables
        self.fabric = fabric
        self.tables = repaired(self.tables, fabric)
        self.amendments += 1
        self._routed()

    def start_again(self) -> None:
        """OpenSM restarts, and routes with what is at routes.sar, or min-hop."""
        path = self.folder / "routes.sar"
        self.fall_back()
        if path.exists():
            self._send(read_routes_file(path))

    def confirm(self) -> None:
        """The switches that did not answer have what they were sent."""
        assert self.tables
        self.deaf, self.tables = (), replace(self.tables, had=None)
        self._routed()

    @property
    def manager(self) -> PluginManager:
        """The agent's subnet manager over this plugin."""
        return PluginManager(self, self.folder / "routes.sar")  # type: ignore[arg-type]

    @property
    def digest(self) -> str:
        """Of what the switches have, and which of that they have confirmed."""
        assert self.tables
        text = hashlib.sha256(f"{self.engine} {self.lids}".encode())
        for part in ("forwarding", "had", "service_levels", "hop_lanes"):
            table = getattr(self.tables, part)
            text.update(b"-" if table is None else np.ascontiguousarray(table).tobytes())
        return text.hexdigest()[:16]

    def status(self) -> PluginStatus:
        self._there()
        assert self.tables
        missing = 0 if self.tables.had is None else max(1, len(self.deaf))
        return PluginStatus(
            protocol=2,
            plugin_version="fake",
            opensm_version="fake",
            pid=self.pid,
            sm_state=self.sm_state,
            state=self.state,
            last_error=self.last_error,
            engine_in_force=self.engine,
            routes_engine="",
            generation_in_force=self.generation,
            generation_loaded=self.generation,
            amendments=self.amendments,
            lmc=self.lmc,
            switches=self.fabric.switches,
            hca_ports=self.fabric.terminals,
            lanes=1,
            unknown_terminals=self.unknown_terminals,
            vanished_terminals=0,
            unconfirmed_switches=missing,
            unconfirmed_lft_blocks=missing,
            unconfirmed_sl2vl_ports=0,
            head_of_queue_seconds=self.head_of_queue,
            heavy_sweeps=2,
            topology_changes=self.topology_changes,
            routings=self.routings,
            lft_blocks_confirmed=0,
            sl2vl_tables_sent=self.sl2vl_tables,
            last_build_unix=math.ceil(self.built_at),
        )

    def load(self, generation: int, proved_from: str | None = None) -> LoadAnswer:
        self._there()
        if self.state != "built":
            raise PluginRefused("another load is under way (test)", "busy")
        self.loads.append(generation)
        file = read_routes_file(self.folder / "routes.next")
        assert file.generation == generation
        if self.refuse:
            for act in self.on_refusal:
                act()  # type: ignore[operator]
            said = self.refuse.pop(0)
            raise PluginRefused(*(said[::-1] if isinstance(said, tuple) else (said, "stale")))
        for look in self.on_load:
            look()
        if proved_from not in (None, self.digest):
            raise PluginRefused(
                f"not {proved_from} but {self.digest} is in force (test)", "changed"
            )
        self._send(file)
        if self.deaf:
            raise PluginRefused(
                f"{len(self.deaf)} switch(es) have not confirmed their tables; OpenSM will send "
                "them again",
                "unconfirmed",
            )
        return LoadAnswer(
            engine_in_force="sar",
            generation_in_force=generation,
            unknown_terminals=0,
        )

    def _send(self, file: RoutesFile) -> None:
        assert self.tables
        before = self.tables.forwarding if self.tables.had is None else self.tables.had
        sent = file if self.lmc_esp0 else _switches_have_one_lid(file)
        had = sent.forwarding.copy()
        for s in self.deaf:
            had[:, s] = before[:, s]
        self.tables = replace(sent, had=had if self.deaf else None)
        self.engine, self.generation, self.amendments = "sar", file.generation, 0
        self._routed()

    def _routed(self) -> None:
        self.routings += 1
        self.built_at = time.time() + 60  # however slow the test is, it was right now

    def notice(self, kind: str, update: int, generation: int) -> None:
        self._there()
        self.notices.append((kind, update, generation))
        for subscriber in self.on_notice:
            subscriber(kind, update)

    def dump(self) -> DumpAnswer:
        self._there()
        assert self.tables is not None
        path = self.folder / "in_force.sar"
        write_routes_file(path, self.tables)
        if self.spoil and self.generation:
            changed = self.tables.forwarding.copy()
            changed[0, 0, -1] = 3 - changed[0, 0, -1] if changed[0, 0, -1] < 3 else 1
            spoiled = RoutesFile(**{**vars(self.tables), "forwarding": changed})
            write_routes_file(path, spoiled)
        return DumpAnswer(path=path, digest=self.digest)

    def _there(self) -> None:
        if self.away:
            raise Unavailable("OpenSM's plugin does not answer (test)")


def repaired(file: RoutesFile, fabric: Fabric) -> RoutesFile:
    """Routes, one lane an offset, for what is left of their fabric: entries whose way is cut take
    the channel with the largest number that still rises (the plugin balances), or no route; to
    switches any that closes no circle."""
    assert file.numbers is not None and file.hop_lanes is None
    wide = file.numbers.shape[2]
    row = {int(guid): s for s, guid in enumerate(file.switch_guids)}
    ends = np.full((len(file.switch_guids), wide), -1)
    for c in np.flatnonzero(fabric.channel_up):
        source, target = (
            row[int(fabric.switch_guid[end[c]])]
            for end in (fabric.channel_source, fabric.channel_target)
        )
        ends[source, fabric.channel_port[c]] = target
    tables = file.forwarding.copy()
    for o, d in np.ndindex(len(tables), tables.shape[2]):
        lane = 0 if file.service_levels is None else int(file.service_levels[o].max())
        numbers = file.numbers[lane]
        channels = np.argwhere(ends >= 0)
        channels = channels[np.argsort(-numbers[channels[:, 0], channels[:, 1]].astype(np.int64))]
        t = d - len(file.terminal_guids)
        root = t if t >= 0 else int(file.terminal_leaf[d])
        left: dict[int, float] = {}  # the number by which a switch sends
        for s in range(len(tables[o])):
            way, v = [], s
            while v >= 0 and v != root and v not in left and len(way) <= len(tables[o]):
                way.append(v)
                port = tables[o, v, d]
                v = int(ends[v, port]) if port < wide else -1
            if v == root or v in left:
                left |= {u: float(numbers[u, tables[o, u, d]]) for u in way}
        left[root] = np.inf
        for s in range(len(tables[o])):
            if s not in left:
                tables[o, s, d] = 255
        for s, p in channels:
            if s not in left and left.get(int(ends[s, p]), -1.0) > numbers[s, p]:
                left[s] = float(numbers[s, p])
                tables[o, s, d] = p
        while t >= 0 and len(left) < len(tables[o]):  # management traffic only: without a circle
            s, p = next((s, p) for s, p in channels if s not in left and int(ends[s, p]) in left)
            left[s], tables[o, s, d] = 0.0, p
    return replace(file, forwarding=tables)


def _switches_have_one_lid(file: RoutesFile) -> RoutesFile:
    """What is in force of a file, as the plugin dumps it."""
    both = {"forwarding": file.forwarding, "service_levels": file.service_levels}
    for name, table in both.items():
        if table is not None:
            both[name] = table.copy()
            both[name][1:, :, len(file.terminal_guids) :] = table[0, :, len(file.terminal_guids) :]
    return replace(file, **both)


STATUS = {
    "protocol": 2,
    "plugin_version": "0.1.0",
    "opensm_version": "OpenSM 3.3.23",
    "pid": os.getpid(),
    "sm_state": "master",
    "state": "built",
    "last_error": "",
    "engine_in_force": "sar",
    "routes_engine": "sar-plus",
    "generation_in_force": 7,
    "generation_loaded": 7,
    "lmc": 0,
    "switches": 6,
    "hca_ports": 16,
    "lanes": 1,
    "unknown_terminals": 0,
    "vanished_terminals": 0,
    "unconfirmed_switches": 0,
    "unconfirmed_lft_blocks": 0,
    "unconfirmed_sl2vl_ports": 0,
    "head_of_queue_seconds": 1.074,
    "heavy_sweeps": 2,
    "topology_changes": 1,
    "routings": 3,
    "lft_blocks_confirmed": 6,
    "last_build_unix": 1700000000,
}
