"""A fabric of network namespaces: switches and host ports, joined by veth pairs with a rate.

A namespace has no name: it lives as long as a file descriptor of this process, or a process in it.
So nothing is left after Ctrl-C or kill -9 that a later start would have to clear: ranks end with
the thread that started them (`PR_SET_PDEATHSIG`), and the kernel then takes the network apart.

Settings that make TCP share a link as a fluid would, each found by a wrong result without it: no
slow start after a pause, windows that are large from the first packet, no memory of former
connections, and queues that hold all windows together, so that no packet is lost. All ports have
one MAC address and ask for none (NOARP): a packet goes where the table says.
"""

from __future__ import annotations

import ctypes
import os
import resource
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from sar_agent.errors import InputError, SarError, TooMany
from sar_agent.fabric import Fabric
from sar_agent.util.plural import plural

HOST_PORT, MANAGEMENT_PORT = "ib0", "mg0"
MANAGEMENT = "10.78.255.254"
"""Of the second network's switch, in that network."""
MTU, HEADERS, PAYLOAD = 1500, 14, 1448
"""Bytes: of a packet, of Ethernet around it, and of data in it (TCP with timestamps)."""
MOST_FOR_EACH_PROCESSOR = 64
"""Host ports. 96 on two processors left .55 to .74 idle at .5 Mbit/s; above, the idle rule decides,
and this bound only keeps a slip from filling the memory."""
_QUEUE = 1 << 30
"""Bytes that a port's queue may hold."""
_MAC = "02:00:00:00:00:01"
_UP_WITHOUT_ARP = 0x81
"""IFF_UP and IFF_NOARP."""
_OWN = "/proc/thread-self/ns/net"
_NEW_NETWORK = 0x40000000
"""CLONE_NEWNET; `os.unshare` came with Python 3.12."""
_SETTINGS = {
    "ipv4/ip_forward": "1",
    "ipv4/conf/all/rp_filter": "0",
    "ipv4/conf/default/rp_filter": "0",
    "ipv4/conf/all/send_redirects": "0",
    "ipv4/conf/default/send_redirects": "0",
    "ipv4/tcp_slow_start_after_idle": "0",
    "ipv4/tcp_no_metrics_save": "1",
    "ipv4/tcp_rmem": "4096 4000000 16000000",
    "ipv4/tcp_wmem": "4096 4000000 16000000",
}


def require_emulation() -> None:
    """Raises `SarError` that names the first capability that this process or machine lacks."""
    if os.geteuid():
        raise SarError("emulate makes network namespaces, which needs root: run it as root")
    _netlink()
    try:
        with ExitStack() as stack:
            one, two = (stack.enter_context(Namespace()) for _ in range(2))
            one.join("p1", two, "p2")
            one.shape("p1", 1e6)
    except SarError:
        raise
    except Exception as error:  # pyroute2 raises what the kernel answered
        text = str(error)[:200]
        raise SarError(
            f"emulate needs veth pairs and the queue tbf of the kernel: {text}"
        ) from None


def require_size(fabric: Fabric) -> None:
    """Raises `TooMany` where this machine does not carry so many hosts."""
    processors = len(os.sched_getaffinity(0))
    if fabric.terminals > (most := MOST_FOR_EACH_PROCESSOR * processors):
        raise TooMany(
            f"{fabric.name} has {plural(fabric.terminals, 'host port')}; {processors} processors "
            "carry at "
            f"most {most}",
            remedy="give a smaller fabric, such as xgft:2;8,6;1,4",
        )


def _netlink() -> Any:
    try:
        import pyroute2
    except ImportError:
        raise SarError(
            "emulate needs pyroute2: pip install 'sar-lab[emulate]', or Debian's python3-pyroute2"
        ) from None
    return pyroute2


class Namespace:
    """A network of its own; `links` are the indices of its ports by name."""

    def __init__(self) -> None:
        self.file, self.netlink = _new_network()
        self.path = f"/proc/{os.getpid()}/fd/{self.file}"
        """A file that other processes can open to enter it, while this process lives."""
        self.links: dict[str, int] = {}
        self._lost = 0
        """Packets that queues lost before they were replaced."""

    def join(self, port: str, other: Namespace, other_port: str) -> None:
        """A cable between two ports that do not exist yet. Both are up."""
        end = {"ifname": other_port, "address": _MAC, "mtu": MTU, "net_ns_fd": other.file}
        self.netlink.link("add", ifname=port, kind="veth", address=_MAC, mtu=MTU, peer=end)
        for space, name in ((self, port), (other, other_port)):
            [space.links[name]] = space.netlink.link_lookup(ifname=name)
            space.netlink.link(
                "set", index=space.links[name], flags=_UP_WITHOUT_ARP, change=_UP_WITHOUT_ARP
            )

    def shape(self, port: str, rate: float) -> None:
        """`port` sends `rate` bits a second, now or from now on."""
        self.netlink.tc(
            "replace",
            "tbf",
            self.links[port],
            0x10000,
            rate=max(1, int(rate / 8)),
            burst=max(2 * MTU, 4000),
            limit=_QUEUE,
        )

    def cut(self, port: str) -> None:
        """What `port` would send is lost, and what waits in its queue, as where a cable is pulled.
        Routes by it stay, which they would not if the port were down."""
        queue = self._queue(port)
        self._lost += queue["drops"] + queue["qlen"]
        self.netlink.tc("replace", "bfifo", self.links[port], 0x20000, limit=1)

    def mend(self, port: str, rate: float) -> None:
        """The way back from `cut`."""
        self._lost += self._queue(port)["drops"]
        self.shape(port, rate)

    def _queue(self, port: str) -> Any:
        [own] = [q for q in self.netlink.get_qdiscs() if q["index"] == self.links[port]]
        return own.get_attr("TCA_STATS2").get_attr("TCA_STATS_QUEUE")

    def dropped(self) -> int:
        """Packets that ports did not send or take, and that had no route, too many hops or an
        address that is wrong, since the network exists."""
        links = sum(
            link.get_attr("IFLA_STATS64")[way]
            for link in self.netlink.get_links()
            for way in ("rx_dropped", "tx_dropped", "rx_errors", "tx_errors")
        )
        queues = sum(
            queue.get_attr("TCA_STATS2").get_attr("TCA_STATS_QUEUE")["drops"]
            for queue in self.netlink.get_qdiscs()
        )
        counted = self.counters("snmp")
        words = ("InHdrErrors", "InAddrErrors", "InDiscards", "OutDiscards", "OutNoRoutes")
        return int(self._lost + links + queues + sum(counted["Ip"][word] for word in words))

    def counters(self, name: str) -> dict[str, dict[str, int]]:
        """Those of `/proc/net/NAME`, `snmp` or `netstat`, of this network: by protocol and name."""
        with self._entered():
            lines = Path("/proc/thread-self/net", name).read_text().splitlines()
        return {
            head.partition(":")[0]: dict(
                zip(head.split()[1:], map(int, values.split()[1:]), strict=True)
            )
            for head, values in zip(lines[::2], lines[1::2], strict=True)
        }

    def configure(self, settings: Mapping[str, str]) -> None:
        """Files of `/proc/sys/net` of this network."""
        with self._entered():
            for name, value in settings.items():
                Path("/proc/sys/net", name).write_text(value)

    @contextmanager
    def _entered(self) -> Iterator[None]:
        with _leaving() as libc:
            if libc.setns(self.file, _NEW_NETWORK):
                raise SarError(f"entering a network failed: {os.strerror(ctypes.get_errno())}")
            yield

    def sent(self) -> dict[str, int]:
        """Bytes that each port has sent."""
        name = {index: port for port, index in self.links.items()}
        return {
            name[link["index"]]: int(link.get_attr("IFLA_STATS64")["tx_bytes"])
            for link in self.netlink.get_links()
            if link["index"] in name
        }

    def set_up(self, port: str) -> None:
        """A port that answers ARP, such as `lo`."""
        [index] = self.netlink.link_lookup(ifname=port)
        self.netlink.link("set", index=index, state="up")

    def close(self) -> None:
        self.netlink.close()
        os.close(self.file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _new_network() -> tuple[int, Any]:
    """A file of a new namespace and a netlink socket in it, which serves this thread only.

    This thread enters the namespace and leaves it again. pyroute2's own way (`netns=`) forks: the
    child collects garbage, closes event loops that it shares with this process, and a later call
    here waits forever."""
    pyroute2 = _netlink()
    with _leaving() as libc:
        if libc.unshare(_NEW_NETWORK):
            raise SarError(
                "this kernel or container allows no network namespace (CLONE_NEWNET, "
                f"CAP_SYS_ADMIN): {os.strerror(ctypes.get_errno())}"
            )
        for name, value in _SETTINGS.items():
            Path("/proc/sys/net", name).write_text(value)
        return os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC), pyroute2.IPRoute()


@contextmanager
def _leaving() -> Iterator[Any]:
    """libc, by which this thread may enter other networks; afterwards it is in its own again."""
    libc = ctypes.CDLL(None, use_errno=True)
    own = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield libc
    finally:
        if libc.setns(own, _NEW_NETWORK):
            os._exit(1)  # what follows would change another network than it means
        os.close(own)


class EmulatedFabric:
    """`with EmulatedFabric(fabric, rate) as network:` a namespace for each switch and each terminal
    (a host with two ports is two), and a veth pair for each live cable; no routes yet."""

    def __init__(self, fabric: Fabric, rate: float, *, management: bool = False) -> None:
        """`rate`: bits a second of every cable in each direction. `management`: hosts have a second
        network, `mg0`, whose one switch has no rate. Raises `TooMany`, `InputError`, `SarError`."""
        require_size(fabric)
        if rate < 1e4:
            raise InputError(f"a rate of {rate:g} bit/s", remedy="give at least .01 Mbit/s")
        self.fabric, self.rate = fabric, rate
        self.switches: list[Namespace] = []
        self.hosts: list[Namespace] = []
        self.management: Namespace | None = None
        """Of the second network's switch; whoever runs here reaches all hosts at `mg0`."""
        self._stack, self._with_management = ExitStack(), management

    def __enter__(self) -> Self:
        _more_files()
        try:
            self._build()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def address(self, terminal: int) -> str:
        """The IPv4 address of a terminal."""
        return f"10.77.{terminal // 250}.{terminal % 250 + 1}"

    def management_address(self, terminal: int) -> str:
        """The address of its host in the second network."""
        return f"10.78.{terminal // 250}.{terminal % 250 + 1}"

    def set_rate(self, rate: float) -> None:
        """All ports, while nothing is sent."""
        for space in (*self.switches, *self.hosts):
            for port in space.links:
                space.shape(port, rate)
        self.rate = rate

    def _build(self) -> None:
        fabric = self.fabric
        for into, count in ((self.switches, fabric.switches), (self.hosts, fabric.terminals)):
            into += [self._stack.enter_context(Namespace()) for _ in range(count)]
        for channel in range(fabric.channels):
            back = int(fabric.channel_reverse[channel])
            if channel < back and fabric.channel_up[channel]:
                source, target = fabric.channel_source[channel], fabric.channel_target[channel]
                port, other = fabric.channel_port[channel], fabric.channel_port[back]
                self.switches[source].join(f"p{port}", self.switches[target], f"p{other}")
        for terminal, host in enumerate(self.hosts):
            if fabric.terminal_up[terminal]:
                self._connect(terminal, host)
        self.set_rate(self.rate)
        if self._with_management:
            self._manage()

    def _manage(self) -> None:
        switch = self.management = self._stack.enter_context(Namespace())
        switch.netlink.link("add", ifname="br0", kind="bridge")
        [bridge] = switch.netlink.link_lookup(ifname="br0")
        switch.netlink.addr("add", index=bridge, address=MANAGEMENT, prefixlen=16)
        switch.set_up("br0")
        switch.set_up("lo")
        for terminal, host in enumerate(self.hosts):
            other = {"ifname": MANAGEMENT_PORT, "net_ns_fd": host.file}
            switch.netlink.link("add", ifname=f"m{terminal}", kind="veth", peer=other)
            [port] = switch.netlink.link_lookup(ifname=f"m{terminal}")
            switch.netlink.link("set", index=port, master=bridge, state="up")
            [own] = host.netlink.link_lookup(ifname=MANAGEMENT_PORT)
            address = self.management_address(terminal)
            host.netlink.addr("add", index=own, address=address, prefixlen=16)
            host.set_up(MANAGEMENT_PORT)
            host.set_up("lo")

    def _connect(self, terminal: int, host: Namespace) -> None:
        leaf = self.switches[self.fabric.terminal_switch[terminal]]
        leaf.join(f"p{self.fabric.terminal_switch_port[terminal]}", host, HOST_PORT)
        port, own = host.links[HOST_PORT], self.address(terminal)
        host.netlink.addr("add", index=port, address=own, prefixlen=32)
        host.netlink.route(
            "add",
            dst="10.77.0.0/16",
            oif=port,
            scope="link",
            prefsrc=own,
            metrics={"initcwnd": 1000, "initrwnd": 1000},
        )


def _more_files() -> None:
    """A namespace takes a few files; the usual limit of 1,024 is for some 150 of them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def ideal_seconds(size: int, rate: float) -> float:
    """Seconds for `size` bytes at `rate` bits a second, with headers."""
    return size * 8 / rate * (MTU + HEADERS) / PAYLOAD
