"""Everything of ours that reads what others wrote, with good seeds for a mutator.

Each reader takes bytes and either gives something or raises `SarError`; anything else is a defect.
"""

from __future__ import annotations

import itertools
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sar_agent.agent.hints import Hints
from sar_agent.agent.state import StateStore
from sar_agent.config.model import load_config, parse_config
from sar_agent.counters.counter_files import decode_counter_text, read_growth
from sar_agent.counters.port_errors import read_port_errors
from sar_agent.counters.readings import difference
from sar_agent.demand.patterns import read_phases
from sar_agent.events.answers import decode_answer
from sar_agent.events.authority import Authority
from sar_agent.events.counters import MessageCounters
from sar_agent.events.dispatch import Dispatcher, JobEvents
from sar_agent.events.inbox import Inbox
from sar_agent.fabric import Fabric
from sar_agent.fabric.db_csv import read_db_csv
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.ibsim_net import read_ibsim_net, write_ibsim_net
from sar_agent.fabric.port_list import read_port_list
from sar_agent.fabric.spec import load_fabric, parse_fabric
from sar_agent.fabric.subnet_lst import read_subnet_lst
from sar_agent.formats.adaptive_dumps import read_adaptive_dump
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.export import export_routes
from sar_agent.formats.read_tables import read_tables
from sar_agent.formats.routes_file import read_generation, read_routes_file, write_routes_file
from sar_agent.jobs import JobMix
from sar_agent.jobs.jobmap import parse_jobmap
from sar_agent.jobs.partition_policy import read_partitions
from sar_agent.jobs.traffic import is_traffic
from sar_agent.opensm.plugin_client import PluginClient
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.reports.adaptive import adaptive_report
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.services.five_phase.coordinator import Coordinator
from sar_agent.services.five_phase.protocol import LeaseRules
from sar_agent.services.five_phase.storage import CoordinatorStorage
from sar_agent.services.five_phase.subscribers import Subscribers
from sar_agent.services.keys.leases import Leases
from sar_agent.services.keys.requests import KeyRequests
from sar_agent.slurm.sinfo import parse_sinfo
from sar_agent.slurm.squeue import parse_poll
from sar_agent.slurm.squeue_json import parse_squeue_json
from sar_agent.slurm.squeue_text import parse_squeue_pipe
from sar_agent.slurm.topology_files import read_topology
from sar_agent.telemetry.metrics import Metrics
from sar_agent.util.hostlist import expand
from sar_agent.util.text_files import normal_lines
from sar_lab.history.by_hour import by_hour
from sar_lab.history.files import read_history
from sar_lab.history.placed_history import place_history
from tests.property import seeds as text
from tests.worlds.db_csv_text import counted, db_csv_of, tables_of, written
from tests.worlds.fabric_texts import SMALL
from tests.worlds.fake_opensm import FakeBridge
from tests.worlds.grids import by_dimension, routes_by, torus
from tests.worlds.table_texts import as_far, as_ibdiagnet

RING, TREE = torus((5,), hosts=1), load_fabric("xgft:2;4,4;1,2")


@dataclass(frozen=True)
class Reader:
    """`read` gives anything, or raises `SarError`."""

    name: str
    seeds: tuple[bytes, ...]
    read: Callable[[bytes], object]


@contextmanager
def readers() -> Iterator[list[Reader]]:
    """All of them; their files are in a folder in memory, where there is one."""
    shm = Path("/dev/shm")
    above = shm if shm.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="sar-mutated-", dir=above) as name:
        found = list[Reader]()
        for make in (_fabrics, _slurm, _tables, _own, _counters):
            folder = Path(name) / make.__name__
            folder.mkdir()
            found += make(folder)
        yield found


def _text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    """As what a program printed is read."""
    return lambda data: read(normal_lines(data.decode(errors="replace")) + "\n")


def _file(path: Path, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    path.parent.mkdir(parents=True, exist_ok=True)

    def act(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return act


def _counters(folder: Path) -> Iterator[Reader]:
    def window(content: str) -> object:
        after = decode_counter_text(content, "file", 200.0)
        before = decode_counter_text(text.PERFQUERY.decode(), "file", 20.0)
        return difference(before, after, 201.0)

    tables = tables_of(SMALL)
    rows = [[1 << 60, port, 7, 8, 9, 10, 11, 12] for port in (1, 2)]
    tables["PM_INFO"] = tables["PM_DELTA"] = counted(text.DB_CSV_COUNTERS, rows)
    csv = written(tables).encode()
    yield Reader("counter files", (text.PERFQUERY, text.IBDIAGNET_PM, csv), _text(window))
    yield Reader("counter growth", (csv,), _file(folder / "growth", read_growth))
    tables["PM_INFO"] = counted("LinkDownedCounter,PortRcvErrors", [[1 << 60, 1, 7, 8]])
    errors = (text.PERFQUERY, text.IBDIAGNET_PM, written(tables).encode())
    yield Reader("port errors", errors, _file(folder / "errors", read_port_errors))


def _fabrics(folder: Path) -> Iterator[Reader]:
    fabric = read_ibnetdiscover(SMALL)
    write_ibsim_net(fabric, folder / "net")
    export_routes(folder, RING, _one_lane(), ["ibdm"])
    net, subnet = (folder / "net").read_bytes(), (folder / "subnet.lst").read_bytes()
    small, csv = SMALL.encode(), db_csv_of(SMALL).encode()
    yield Reader("ibnetdiscover", (small,), _text(read_ibnetdiscover))
    yield Reader("ibsim .net", (net, text.NET), _text(read_ibsim_net))
    yield Reader("subnet.lst", (subnet,), _text(read_subnet_lst))
    yield Reader("ports", (text.PORTS,), _text(lambda content: read_port_list(content, "file")))
    escaped = db_csv_of(SMALL, escape=True).encode()
    yield Reader("db_csv", (csv, escaped), _text(read_db_csv))
    everything = (small, net, subnet, csv, text.PORTS)
    yield Reader("fabric, any", everything, _text(lambda content: parse_fabric(content, "file")))
    conf, yaml = folder / "conf/topology.conf", folder / "yaml/topology.yaml"
    yield Reader("topology.conf", text.TOPOLOGY_CONF, _file(conf, read_topology))
    yield Reader("topology.yaml", text.TOPOLOGY_YAML, _file(yaml, read_topology))
    home = folder / "ibdiagnet"
    home.mkdir()
    (home / "ibdiagnet2.lst").write_bytes(subnet)
    first = _file(home / "ibdiagnet2.ibnetdiscover", lambda p: load_fabric(p.parent))
    yield Reader("folder of ibdiagnet", (small,), first)
    yield Reader("host list", text.HOST_LISTS, _text(lambda content: expand(content.strip())))


def _slurm(folder: Path) -> Iterator[Reader]:
    yield Reader("squeue JSON", text.SQUEUE_JSON, _text(parse_squeue_json))
    yield Reader("squeue text", text.SQUEUE_TEXT, _text(parse_squeue_pipe))
    yield Reader("squeue, polled", text.SQUEUE_LIVE, _text(lambda c: parse_poll(c, "mark")))
    yield Reader("sacct history", text.HISTORIES, _file(folder / "history", read_history))
    hosts, routes = TREE.terminal_host, load_engine("minhop").route(TREE, JobMix.of([]), Options())

    def hours(path: Path) -> object:
        placed = place_history(read_history(path), TREE)
        begin, end = placed.history.span
        return by_hour(placed, routes, None) if end - begin < 2 * 86400 else placed

    rows = [
        f'{n},{1767607200 + 900 * n},{1767610800 + 900 * n},"{hosts[n]},{hosts[-n]}"\n'
        for n in range(8)
    ]
    trace = "".join(["job,start,end,nodelist\n", *rows]).encode()
    yield Reader("history by hour", (trace,), _file(folder / "hours", hours))
    yield Reader("sinfo", text.SINFO, _text(lambda c: parse_sinfo(c, None)))
    yield Reader("job map", text.JOB_MAPS, _text(parse_jobmap))
    yield Reader("traffic words", text.TRAFFIC, _text(lambda c: is_traffic(c.strip())))
    yield Reader("phases of ranks", text.PHASES, _text(lambda c: read_phases(c, 16)))
    mix = JobMix.of([])
    yield Reader(
        "partitions.conf",
        text.PARTITIONS,
        _file(folder / "partitions.conf", lambda p: read_partitions(p, TREE, mix)),
    )
    yield Reader(
        "partition policy",
        text.POLICIES,
        _file(folder / "policy.toml", lambda p: read_partitions(p, TREE, mix)),
    )


def _one_lane() -> Routes:
    return load_engine("minhop").route(RING, JobMix.of([]), Options())


def _two_lanes() -> Routes:
    """By service level: 1 for every second destination."""
    routes = routes_by(RING, by_dimension((5,)))
    level = np.zeros_like(routes.egress)
    level[:, 1::2] = 1
    return replace(routes, virtual_lanes=2, service_level=level)


def _tables(folder: Path) -> Iterator[Reader]:
    made = [_one_lane(), _two_lanes()]
    images = []
    for number, routes in enumerate(made):
        write_routes_file(folder / "routes.sar", routes_to_file(RING, routes, 7 + number))
        images.append((folder / "routes.sar").read_bytes())

    def routes_file(path: Path) -> object:
        return read_generation(path), read_routes_file(path)

    plain = _file(folder / "routes/routes.sar", routes_file)
    yield Reader("routes file", tuple(images), plain)
    yield Reader("routes file, sums right", tuple(images), lambda data: plain(_summed(data)))
    for name, form, file in (
        ("LFT dump", "lfts", "lfts.dump"),
        ("fdbs", "ibdm", "fdbs"),
        ("psl", "ibdm", "psl"),
        ("slvl", "ibdm", "slvl"),
    ):
        home = folder / name
        home.mkdir()
        export_routes(home, RING, made[1], [form])
        for other in set(home.iterdir()) - {home / n for n in ("fdbs", "psl", "slvl", "lfts.dump")}:
            other.unlink()
        seeds = ((home / file).read_bytes(),)
        yield Reader(name, seeds, _file(home / file, lambda p: _tables_of(p.parent, RING)))
        if name == "fdbs":
            plain_text = seeds[0].decode()
            seeds = (as_far(plain_text).encode(), as_ibdiagnet(plain_text).encode())
            far = folder / "far/ibdiagnet2.far"
            yield Reader("far", seeds, _file(far, lambda p: _tables_of(p.parent, RING)))
            yield Reader("adaptive routing", (*text.ADAPTIVE, seeds[0]), _adaptive(folder, made[0]))


def _adaptive(folder: Path, routes: Routes) -> Callable[[bytes], object]:
    traffic = traffic_of(RING, JobMix.of([]), routes)
    return _file(folder / "ar", lambda path: adaptive_report(traffic, [read_adaptive_dump(path)]))


def _tables_of(folder: Path, fabric: Fabric) -> object:
    return read_tables(folder, fabric)


def _summed(image: bytes) -> bytes:
    """With checksums that fit, or no change would come past them."""
    if len(image) < 128:
        return image
    size = len(image).to_bytes(8, "little")
    payload = zlib.crc32(image[128:]).to_bytes(4, "little")
    # Where the header has them: opensm_bridge/FORMAT.md.
    head = bytearray(image[:124])
    head[16:24], head[120:124] = size, payload
    return bytes(head) + zlib.crc32(head).to_bytes(4, "little") + image[128:]


def _own(folder: Path) -> Iterator[Reader]:
    home = folder / "state"
    home.mkdir()
    for name, seeds, read in (
        ("state.json", text.STATES, lambda path: StateStore(path.parent).load()),
        ("leases.json", text.LEASES, lambda path: list(Leases(path.parent))),
        ("hints.json", text.HINTS, lambda path: Hints(path.parent, frozenset())),
        ("update.json", text.RUNS, lambda path: CoordinatorStorage(path.parent).load()),
        ("subscribers.json", text.MEMBERS, lambda path: CoordinatorStorage(path.parent).load()),
    ):
        mine = home / name
        mine.mkdir()
        if name == "subscribers.json":
            (mine / "update.json").write_bytes(text.RUNS[0])
        if name == "update.json":
            (mine / "subscribers.json").write_bytes(text.MEMBERS[0])
        yield Reader(name, seeds, _file(mine / name, read))
    yield Reader("settings", text.SETTINGS, _text(parse_config))
    yield Reader("settings, file", text.SETTINGS, _file(folder / "settings.toml", load_config))
    yield from _talks(folder)


def _talks(folder: Path) -> Iterator[Reader]:
    def decode(line: bytes) -> tuple[int, bytes]:
        uid, _, payload = line.removeprefix(b"MUNGE:").partition(b":")
        return int(uid), payload

    authority, metrics = Authority(frozenset({0})), Metrics("0", "install", "sar")
    inbox = Inbox(lambda: None)
    desk = KeyRequests(authority)
    subscribers = Subscribers(Coordinator(folder, LeaseRules()), authority)
    jobs = JobEvents(authority, inbox, {}, desk.of_job)
    dispatcher = Dispatcher(decode, jobs, MessageCounters(metrics), [desk, subscribers])
    number = itertools.count(1)

    def door(data: bytes) -> object:
        """Of root or of one of many users; a new id each time, for it is not the same message."""
        turn = next(number)
        if turn % 1000 == 0:
            inbox.drain()
        data = data.replace(b"0123456789abcdef", b"%016x" % turn)
        uid = 0 if turn % 2 else 1000 + turn // 2
        answer = dispatcher.answer(b"MUNGE:%d:" % uid + data.replace(b"\0", b" "), "tcp")
        assert isinstance(decode_answer(answer)["ok"], bool)
        return dispatcher.answer(data, "tcp")

    yield Reader("door", text.MESSAGES, door)
    bridge = PluginClient(folder / "bridge.sock", 5.0)
    answers: dict[str, bytes] = {}

    class Said(PluginClient):
        def _ask(self, request: str, timeout: float) -> bytes:
            return answers["now"]

        def _ask_again(self, request: str) -> bytes:
            return answers["now"]

    said = Said(bridge.socket_path, 5.0)

    def plugin(data: bytes) -> object:
        answers["now"] = data
        return said.status()

    status = FakeBridge(folder / "fake", RING).status().model_dump_json().encode() + b"\n"
    yield Reader("plugin's status", (status,), plugin)
