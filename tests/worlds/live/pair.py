"""Two OpenSMs with the plugin on one fabric under ibsim, each with an agent. Slurm's queue is a
fake; the agents' connections pass through relays that a test can cut."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sar_agent.errors import SarError
from sar_agent.fabric.ibsim_net import write_ibsim_net
from sar_agent.fabric.spec import load_fabric
from sar_agent.opensm.plugin_client import PluginStatus
from sar_agent.standby.terms import TermRecord
from sar_lab.live.agent import AT_ONCE
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import free_port, wait_until
from tests.worlds.fake_squeue import fake_squeue
from tests.worlds.live import readback
from tests.worlds.live.agent_process import CLI, AgentFolder, run_agent, write_config
from tests.worlds.live.loop import FABRIC
from tests.worlds.live.site import ROOT, plugin
from tests.worlds.standby_certificate import certificate

POLLING = {"sminfo_polling_timeout": "1000", "polling_retry_number": "4"}
"""How a standby OpenSM watches its master: it takes over after some 5 s."""


class Relay:
    """Passes bytes on to `target` until it is cut; then connections end, and none is accepted."""

    def __init__(self, target: int) -> None:
        self.port, self.target = free_port(), target
        self._open: list[socket.socket] = []
        self._listener: socket.socket | None = None
        self.join()

    def join(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        listener, self._listener = self._listener, None
        for end in [*([listener] if listener else []), *self._open]:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._open.clear()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except ConnectionAbortedError:
                continue
            except OSError:  # cut
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:  # refused, or reset while the agent ends: it may start again
                near.close()
                continue
            if listener is not self._listener:  # cut meanwhile
                near.close()
                far.close()
                return
            self._open += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=_pass_on, args=(one, other), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@dataclass
class Machine(AgentFolder):
    """One OpenSM and its agent."""

    name: str
    folder: Path
    sm: OpenSM
    listen: int
    relay: Relay
    """By which this machine reaches the other one."""
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)
    agent: subprocess.Popen[bytes] | None = None

    def start_agent(self) -> None:
        self.agent = run_agent(self.config())

    def kill_agent(self) -> None:
        assert self.agent is not None
        self.agent.kill()
        self.agent.wait()
        self.agent = None

    def config(self) -> Path:
        return write_config(self.folder, self.sections)

    def cli(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*CLI, *words, "--config", str(self.config())],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=240,
        )

    def status(self) -> PluginStatus | None:
        try:
            return self.bridge.status()
        except SarError:
            return None

    def term(self) -> TermRecord:
        return TermRecord.model_validate_json((self.state_dir / "standby.json").read_bytes())

    def is_master(self) -> bool:
        status = self.status()
        return status is not None and status.sm_state == "master" and status.settled

    def is_primed(self) -> bool:
        """Whether its first sweep, and the one that the plugin asks for after it, are over."""
        status = self.status()
        return self.is_master() and status is not None and status.routings >= 2

    def installs(self) -> bool:
        """Whether its OpenSM is the master, and its agent's last pass found nothing to do."""
        return self.is_master() and _last_pass(self.log()) == "the same"


def _last_pass(log: str) -> str:
    """How the newest of the lines begins that tell of a pass or of a change of roles."""
    for line in reversed(log.splitlines()):
        if line.startswith("the same"):
            return "the same"
        if "this agent" in line:
            return "this agent"
    return ""


@dataclass
class Pair:
    """`one` has the higher priority."""

    folder: Path
    fabric: Ibsim
    one: Machine
    two: Machine

    def jobs(self, *jobs: str) -> None:
        """Host lists; the first is job 1. In one step: an agent may be reading."""
        rows = [{"%i": str(n), "%N": hosts} for n, hosts in enumerate(jobs, 1)]
        new = self.folder / "next"
        new.mkdir(exist_ok=True)
        fake_squeue(new, rows)
        (new / "fake-squeue.json").replace(self.folder / "fake-squeue.json")

    def wait_roles(self, hold: Callable[[], bool]) -> None:
        assert wait_until(hold, 90), f"{self.one.log()[-3000:]}\n---\n{self.two.log()[-3000:]}"

    def tables(self) -> readback.Tables:
        """What the switches have, by dump_fts."""
        return readback.installed(self.fabric)

    def copied(self, source: Machine, target: Machine) -> bool:
        """Whether `target` has the state of `source`, and its routes file."""
        names = ["state.json", *(f"generations/{p.name}" for p in
                                 (source.state_dir / "generations").glob("*.sar"))]  # fmt: skip
        pairs = [(source.state_dir / name, target.state_dir / name) for name in names]
        pairs.append((source.sm.routes_path, target.sm.routes_path))
        return all(b.exists() and a.read_bytes() == b.read_bytes() for a, b in pairs)

    def split(self) -> None:
        """The agents do not reach each other."""
        self.one.relay.cut()
        self.two.relay.cut()

    def join(self) -> None:
        self.one.relay.join()
        self.two.relay.join()

    def watch(
        self, act: Callable[[], None], holds: Callable[[], bool], seconds: float
    ) -> tuple[float, int, int]:
        """From `act()` until `holds()`: the seconds that took, how often all tables were read
        meanwhile, and the largest number of entries that differed from those before."""
        before, counts, over = self.tables(), [0], threading.Event()

        def read() -> None:
            while not over.is_set():
                counts.append(changed(before, self.tables()))

        reader, began = threading.Thread(target=read), time.monotonic()
        reader.start()
        try:
            act()  # in this thread, with which a daemon that it starts would end
            held = wait_until(holds, seconds)
            took = time.monotonic() - began
        finally:
            over.set()
            reader.join()
        assert held, f"{self.one.log()[-3000:]}\n---\n{self.two.log()[-3000:]}"
        counts.append(changed(before, self.tables()))
        return took, len(counts) - 1, max(counts)


def changed(before: readback.Tables, after: readback.Tables) -> int:
    """Entries that differ, or are in one of the two only."""
    return sum(before.get(key) != after.get(key) for key in before.keys() | after.keys())


@contextmanager
def pair(folder: Path, spec: str = FABRIC) -> Iterator[Pair]:
    """Both OpenSMs are up, `one` is the master; no agent is started."""
    net = folder / "fabric.net"
    write_ibsim_net(load_fabric(spec), net)
    secret, squeue = certificate(folder / "standby.pem"), fake_squeue(folder, [])
    with ExitStack() as stack:
        fabric = stack.enter_context(Ibsim(net))
        ports = [free_port() for _ in range(2)]
        made = []
        for number, (name, host, priority) in enumerate((("one", "n001", 9), ("two", "n010", 1))):
            here = folder / name
            here.mkdir()
            sm = OpenSM(fabric, host=host, plugin=plugin(), priority=priority, options=POLLING)
            stack.enter_context(sm)
            relay = Relay(ports[1 - number])
            stack.callback(relay.cut)
            machine = Machine(name, here, sm, ports[number], relay)
            machine.sections = {
                "agent": {
                    "mode": "install",
                    "engine": "sar",
                    "interval_seconds": 0.3,
                    "fabric_debounce_seconds": 0.2,
                    **AT_ONCE,
                    "reoptimise_seconds": 0,
                    "state_dir": str(machine.state_dir),
                    "run_dir": str(sm.run_dir),
                    "metrics_address": f"127.0.0.1:{free_port()}",
                },
                "slurm": {"squeue": [squeue], "topology_conf": ""},
                "opensm": {"plugin_socket": str(sm.socket_path), "poll_seconds": 0.1},
                "standby": {
                    "peer": f"127.0.0.1:{relay.port}",
                    "listen": f"127.0.0.1:{ports[number]}",
                    "certificate": str(secret),
                    "interval_seconds": 0.2,
                },
            }
            made.append(machine)
            if name == "one":
                sm.wait_up()
                assert wait_until(machine.is_primed, 30)
        site = Pair(folder, fabric, *made)
        assert wait_until(
            lambda: (s := site.two.status()) is not None and s.sm_state == "standby", 30
        )
        try:
            yield site
        finally:
            for machine in made:
                if machine.agent:
                    machine.kill_agent()
