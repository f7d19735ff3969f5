"""Two OpenSMs with the plugin on one fabric under ibsim, each with an agent and what sends its
archive. Slurm's queue is a fake, and so is ssh: a local command that runs the forced command of the
other machine. A test can cut that way."""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any

from sar_agent.errors import SarError
from sar_agent.fabric.ibsim_net import write_ibsim_net
from sar_agent.fabric.spec import load_fabric
from sar_agent.opensm.plugin_client import PluginStatus
from sar_lab.live.agent import AT_ONCE
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import free_port, wait_until
from tests.worlds.fake_squeue import fake_squeue
from tests.worlds.live import readback
from tests.worlds.live.agent_process import CLI, AgentFolder, run_agent, scrape, write_config
from tests.worlds.live.loop import FABRIC
from tests.worlds.live.site import ROOT, plugin

POLLING = {"sminfo_polling_timeout": "1000", "polling_retry_number": "4"}
"""How a standby OpenSM watches its master: it takes over after some 5 s."""


SSH = """#!/bin/sh
# In place of ssh: runs the forced command of the other machine, unless the way there is cut.
[ ! -e {cut} ] || {{ echo "ssh: connect to host other port 22: No route to host" >&2; exit 255; }}
exec {cli} serve-state --config {config}
"""


@dataclass
class Machine(AgentFolder):
    """One OpenSM and its agent."""

    name: str
    folder: Path
    sm: OpenSM
    cut: Path
    """While it is there, this machine does not reach the other one."""
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)
    agent: subprocess.Popen[bytes] | None = None
    sender: subprocess.Popen[bytes] | None = None

    def start_agent(self) -> None:
        """With what sends its archive, as sar-agent-archive.service does."""
        self.agent = run_agent(self.config())
        with (self.folder / "sender.log").open("ab") as log:
            self.sender = subprocess.Popen(
                [*CLI, "send-state", "--every", "0.2", "--config", str(self.config())],
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def kill_agent(self) -> None:
        for process in (self.agent, self.sender):
            assert process is not None
            process.kill()
            process.wait()
        self.agent = self.sender = None

    def sent(self) -> str:
        """What the sender has logged."""
        return (self.folder / "sender.log").read_text()

    def config(self) -> Path:
        """In one step: the other machine's forced command may be reading it."""
        new = self.folder / "new"
        new.mkdir(exist_ok=True)
        return write_config(new, self.sections).replace(self.folder / "sar-agent.toml")

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

    def is_master(self) -> bool:
        status = self.status()
        return status is not None and status.sm_state == "master" and status.settled

    def passes(self) -> bool:
        """Whether its OpenSM is the master and its agent is not quiet: it may install."""
        port = int(self.sections["agent"]["metrics_address"].rpartition(":")[2])
        try:
            return self.is_master() and scrape(port)["sar_agent_standby",] == 0
        except (OSError, HTTPException, KeyError):
            return False

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
        if "this agent" in line or "passes begin" in line:
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
        for machine in (self.one, self.two):
            machine.cut.touch()

    def join(self) -> None:
        for machine in (self.one, self.two):
            machine.cut.unlink(missing_ok=True)

    def watch(
        self, act: Callable[[], None], holds: Callable[[], bool], seconds: float
    ) -> tuple[float, int, int, int]:
        """From `act()` until `holds()`: the seconds that took, how often all tables were read
        meanwhile, the largest number of entries that differed from those before, and how often both
        agents could install."""
        before, counts, over, both = self.tables(), [0], threading.Event(), [0]

        def read() -> None:
            while not over.is_set():
                counts.append(changed(before, self.tables()))
                both[0] += self.one.passes() and self.two.passes()

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
        return took, len(counts) - 1, max(counts), both[0]


def in_place_of_ssh(path: Path, cut: Path, config: Path) -> Path:
    """A command that runs the forced command of the machine whose settings `config` has."""
    path.write_text(SSH.format(cut=cut, cli=shlex.join(map(str, CLI)), config=config))
    path.chmod(0o755)
    return path


def changed(before: readback.Tables, after: readback.Tables) -> int:
    """Entries that differ, or are in one of the two only."""
    return sum(before.get(key) != after.get(key) for key in before.keys() | after.keys())


@contextmanager
def pair(folder: Path, spec: str = FABRIC) -> Iterator[Pair]:
    """Both OpenSMs are up, `one` is the master; no agent is started."""
    net = folder / "fabric.net"
    write_ibsim_net(load_fabric(spec), net)
    squeue = fake_squeue(folder, [])
    with ExitStack() as stack:
        fabric = stack.enter_context(Ibsim(net))
        made = []
        for name, other, host, priority in (("one", "two", "n001", 9), ("two", "one", "n010", 1)):
            here = folder / name
            here.mkdir()
            sm = OpenSM(fabric, host=host, plugin=plugin(), priority=priority, options=POLLING)
            stack.enter_context(sm)
            machine = Machine(name, here, sm, here / "cut")
            config = folder / other / "sar-agent.toml"
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
                    "peer": [str(in_place_of_ssh(here / "ssh", machine.cut, config))],
                },
                "slurm": {"squeue": [squeue], "topology_conf": ""},
                "opensm": {"plugin_socket": str(sm.socket_path), "poll_seconds": 0.1},
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
