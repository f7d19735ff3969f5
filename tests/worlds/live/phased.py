"""A site for five-phase updates: a fabric with two LIDs a port under ibsim, a stock OpenSM with the
plugin, munge, the agent, and subscribers in processes of their own. Slurm's queue is a fake."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sar_agent.errors import SarError
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.routes_file import RoutesFile, read_routes_file
from sar_agent.opensm.plugin_client import PluginStatus
from sar_lab.five_phase.model_replay import read_trace, replay
from sar_lab.live.agent import AT_ONCE
from sar_lab.live.generated import ibsim_for
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.munge_daemon import MungeDaemon
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import wait_until
from tests.worlds.fake_squeue import fake_squeue
from tests.worlds.live.agent_process import AgentFolder, run_agent, write_config
from tests.worlds.live.munged import tell
from tests.worlds.live.site import ROOT, is_primed, plugin
from tests.worlds.live.subscriber import Subscriber

TREE = "xgft:2;4,4;1,2"


@dataclass
class Phased(AgentFolder):
    folder: Path
    fabric: Ibsim
    sm: OpenSM
    munge: Path
    update: dict[str, Any]
    agents: list[subprocess.Popen[bytes]] = field(default_factory=list)
    subscribers: list[Subscriber] = field(default_factory=list)

    @property
    def trace(self) -> Path:
        return self.folder / "coordinator.jsonl"

    @property
    def socket(self) -> Path:
        return self.sm.run_dir / "events.sock"

    def jobs(self, *jobs: str, start: float | None = None) -> None:
        """Host lists, `n[001,005]`; the first is job 1. All began long ago, or at `start`."""
        rows = [{"%i": str(n), "%A": str(n), "%N": hosts, "%U": "0"} for n, hosts in
                enumerate(jobs, 1)]  # fmt: skip
        rows = [row | ({"%S": str(int(start))} if start else {}) for row in rows]
        fake_squeue(self.folder, rows)

    def config(self, **agent: Any) -> Path:
        here = self.fabric.env("n002")
        env = {k: v for k, v in here.items() if os.environ.get(k) != v}
        sections: dict[str, dict[str, Any]] = {
            "agent": {
                "mode": "install",
                "interval_seconds": 0.2,
                "fabric_debounce_seconds": 0.1,
                **AT_ONCE,
                "reoptimise_seconds": 0,
                "max_lanes": 8,
                "state_dir": str(self.folder / "state"),
                "run_dir": str(self.sm.run_dir),
                "metrics_address": "",
            }
            | agent,
            "slurm": {"squeue": [str(self.folder / "fake-squeue")], "topology_conf": ""},
            "opensm": {"plugin_socket": str(self.sm.socket_path), "poll_seconds": 0.1},
            "events": {"munge_socket": str(self.munge)},
            "update": {"trace": str(self.trace)} | self.update,
        }
        return write_config(self.folder, sections | {"fabric": {"environment": env}})

    def start(self, **agent: Any) -> subprocess.Popen[bytes]:
        """`sar-agent run`."""
        process = run_agent(self.config(**agent))
        self.agents.append(process)
        return process

    def kill_agent(self) -> None:
        self.agents[-1].kill()
        self.agents[-1].wait()

    def subscribe(self, job: int = 1, *words: str) -> Subscriber:
        """Starts `sar-migrate-demo` on its own host, where it receives OpenSM's notices."""
        number = len(self.subscribers)
        self.subscribers.append(
            Subscriber(
                self.folder,
                self.socket,
                self.munge,
                *("notices=1", "simulated=1", "pairs=2", *words),
                env=self.fabric.env(f"n{number + 3:03d}"),
                name=f"subscriber-{number}",
                job=job,
            )
        )
        return self.subscribers[-1]

    def asked(self) -> dict[str, Any]:
        """The agent's answer to a question about updates."""
        return dict(tell(self.socket, b"status")["status"]["update"])

    def dumped(self) -> RoutesFile:
        return read_routes_file(self.bridge.dump().path)

    def assert_model_could(self) -> None:
        """All that agent and subscribers did is something that spin has looked into: there is one
        protocol, and it is proved."""
        traces = [self.trace, *(one.trace for one in self.subscribers)]
        lines = read_trace({path.name: path.read_text() for path in traces})
        assert {one["party"] for one in lines} == {"coordinator", "subscriber"}
        verdict = replay(lines, ROOT / "libs/migrate/model")
        assert verdict.refused is None, (verdict, lines)

    def wait_installed(self, after: int = 0, seconds: float = 90) -> PluginStatus:
        def there() -> bool:
            return any(row.generation > after for row in self.rows())

        assert wait_until(there, seconds, 0.05), self.log()
        return self.bridge.status()

    def wait_built(self) -> None:
        """The routes are in force, also in an OpenSM that was started again."""

        def built() -> bool:
            try:
                status = self.bridge.status()
            except SarError:
                return False  # the socket is that of the OpenSM before
            return status.settled and status.generation_in_force == self.rows()[0].generation

        assert wait_until(built, 60), (self.bridge.status(), self.log())

    def wait_subscribed(self, count: int) -> None:
        """At the agent, and each process also for OpenSM's notices."""
        assert wait_until(lambda: self.asked()["subscribers"] == count, 30), self.log()
        for one in self.subscribers:
            one.wait("informed")

    def wait_phase(self, phase: str, seconds: float = 30) -> None:
        assert wait_until(lambda: self.saved_phase() == phase, seconds, 0.002), self.log()

    def saved_phase(self) -> str:
        path = self.folder / "state/update.json"
        return str(json.loads(path.read_text())["phase"]) if path.exists() else "idle"

    def wait_all_on(self, offset: int, *subscribers: Subscriber, seconds: float = 30) -> None:
        """Until all connections of these (or of all) are there and nowhere else."""
        some = subscribers or tuple(self.subscribers)

        def all_on() -> bool:
            return all(offsets_at(one, time.time()) == {offset} for one in some)

        assert wait_until(all_on, seconds), ([one.lines() for one in some], self.log())


def offsets_at(one: Subscriber, when: float) -> set[int]:
    """The LID offsets that connections of a subscriber may have used at that time: while it moves
    both. It begins on 1 (libs/migrate/PROTOCOL.md)."""
    used = {1}
    for line in one.lines():
        if line["at"] <= when and line["event"] == "move":
            used = used | {line["offset"]}
        elif line["at"] <= when and line["event"] == "moved":
            used = {line["offset"]}
    return used


@contextmanager
def phased(folder: Path, fabric: str = TREE, lmc: int = 1, **update: Any) -> Iterator[Phased]:
    """The agent is not started yet; OpenSM runs on n001."""
    with ExitStack() as stack:
        munge = stack.enter_context(MungeDaemon())
        net = stack.enter_context(ibsim_for(load_fabric(fabric)))
        options = {"lmc": str(lmc)}
        sm = stack.enter_context(OpenSM(net, host="n001", plugin=plugin(), options=options))
        sm.wait_up()
        keys = {"mode": "five-phase", "deadline_seconds": 4, "lease_seconds": 2} | update
        site = Phased(folder, net, sm, munge.socket, keys)
        assert wait_until(lambda: sm.socket_path.exists() and is_primed(site.bridge.status()), 30)
        try:
            yield site
        finally:
            for one in site.subscribers:
                one.__exit__()
            for agent in site.agents:
                agent.kill()
                agent.wait()
