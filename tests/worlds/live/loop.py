"""A whole site: ibsim, OpenSM, Slurm and the agent as a process of its own."""

from __future__ import annotations

import gc
import io
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from sar_agent.cli import main
from sar_agent.fabric.ibsim_net import write_ibsim_net
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.routes_file import RoutesFile
from sar_agent.install.generations import Generations
from sar_agent.opensm.plugin_client import PluginStatus
from sar_lab.live.agent import AT_ONCE
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import free_port, wait_until
from sar_lab.live.slurm import SlurmCluster
from tests.worlds.live import readback
from tests.worlds.live.agent_process import CLI, AgentFolder, run_agent, scrape, write_config
from tests.worlds.live.site import ROOT, is_primed, plugin

FABRIC = "xgft:2;4,4;1,2"
"""Hosts n001 … n016 on leaves S1-0 … S1-3 (ports 1-4; 5 and 6 up), spines S2-0 and S2-1."""


@dataclass
class LoopSite(AgentFolder):
    folder: Path
    fabric: Ibsim
    sm: OpenSM
    slurm: SlurmCluster
    settings: dict[str, dict[str, Any]]
    port: int
    daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def config(self, **agent: Any) -> Path:
        """The TOML file, with other keys of [agent]."""
        sections = self.settings | {"agent": self.settings["agent"] | agent}
        return write_config(self.folder, sections)

    def env(self) -> dict[str, str]:
        return self.slurm.env() | {"PYTHONPATH": str(ROOT)}

    def cli(self, *words: str, **agent: Any) -> subprocess.CompletedProcess[str]:
        """One command of the agent, to its end."""
        return subprocess.run(
            [*CLI, *words, "--config", str(self.config(**agent))],
            env=self.env(),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=480,
        )

    def ask(self, *words: str, **agent: Any) -> tuple[int, str, str]:
        """The same in this process, which saves its start: (exit code, stdout, stderr)."""
        out, err, code = io.StringIO(), io.StringIO(), 0
        argv = ["sar-agent", *words, "--config", str(self.config(**agent))]
        with (
            mock.patch.object(sys, "argv", argv),
            mock.patch.dict(os.environ, {"SLURM_CONF": str(self.slurm.conf)}),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            try:
                main()
            except SystemExit as end:
                code = int(end.code or 0)
            finally:
                gc.enable()
        return code, out.getvalue(), err.getvalue()

    def start(self, **agent: Any) -> subprocess.Popen[bytes]:
        """`sar-agent run`; its log is `agent.log`."""
        daemon = run_agent(self.config(**agent), self.env())
        self.daemons.append(daemon)
        return daemon

    def plan(self) -> RoutesFile:
        """What the agent says it installed last."""
        state = self.state()
        assert state is not None
        return Generations(self.state_dir).read(state.generation)

    def wait_installed(self, after: int = 0, seconds: float = 60) -> PluginStatus:
        """Until a generation above `after` is in force and the agent's state says so, too; and its
        row is in the history, where that can be written: it comes last."""

        def there() -> bool:
            state = self.state()
            return (
                state is not None
                and state.generation > after
                and self.bridge.status().generation_in_force == state.generation
            )

        assert wait_until(there, seconds, 0.1), self.log()
        status = self.bridge.status()
        wait_until(lambda: status.generation_in_force in {r.generation for r in self.rows()}, 5)
        return status

    def assert_plan_installed(self) -> None:
        """Entry by entry, for every (switch, LID), by what the switches themselves say; the agent
        may be about to install another plan, so this is asked until it holds."""
        wanted: dict[tuple[int, int], int] = {}
        installed: dict[tuple[int, int], int] = {}

        def same() -> bool:
            nonlocal wanted, installed
            installed = readback.installed(self.fabric)
            wanted = readback.wanted(self.plan(), readback.lids(self.sm.folder / "cache"))
            return installed == wanted

        wait_until(same, 20, 0.2)
        assert installed == wanted
        assert len(wanted) == 6 * 22

    def metrics(self) -> dict[tuple[str, ...], float]:
        """A scrape: (name, label values …) to value."""
        return scrape(self.port)

    def assert_paths(self, pairs: Iterable[tuple[str, str]]) -> None:
        """ibtracert walks the switches' tables as a packet would: each step is the plan's."""
        plan, fabric = self.plan(), load_fabric(FABRIC)
        lids = readback.lids(self.sm.folder / "cache")
        rows = {guid: row for row, guid in enumerate(plan.switch_guids.tolist())}
        for source, target in pairs:
            ends = [int(fabric.terminal_guid[fabric.hosts[host][0]]) for host in (source, target)]
            run = self.fabric.run(
                "ibtracert", *(str(lids[guid].start) for guid in ends), host="n002"
            )
            assert run.returncode == 0, run.stderr
            steps = re.findall(r"^\[(\d+)\] -> .*?\{(0x[0-9a-f]+)\}", run.stdout, re.MULTILINE)
            assert len(steps) == 4, run.stdout  # host, leaf, spine, leaf, host
            column = plan.terminal_guids.tolist().index(ends[1])
            for (_, here), (port, _) in itertools.pairwise(steps):
                assert plan.forwarding[0, rows[int(here, 16)], column] == int(port), run.stdout


@contextmanager
def loop_site(
    folder: Path, slurm: SlurmCluster, spec: str = FABRIC, **opensm: Any
) -> Iterator[LoopSite]:
    """A site whose agent is not started yet; by default the agent installs."""
    net = folder / "fabric.net"
    write_ibsim_net(load_fabric(spec), net)
    opensm.setdefault("plugin", plugin())
    with ExitStack() as stack:
        fabric = stack.enter_context(Ibsim(net))
        sm = stack.enter_context(OpenSM(fabric, host="n001", **opensm))
        sm.wait_up()
        port = free_port()
        env = fabric.env("n002")
        settings: dict[str, dict[str, Any]] = {
            "agent": {
                "mode": "install",
                "interval_seconds": 0.5,
                "fabric_debounce_seconds": 2,
                **AT_ONCE,
                "state_dir": str(folder / "state"),
                "run_dir": str(sm.run_dir),
                "metrics_address": f"127.0.0.1:{port}",
            },
            "slurm": {"topology_conf": str(slurm.topology_conf)},
            "fabric": {
                "environment": {k: v for k, v in env.items() if os.environ.get(k) != v},
            },
            "opensm": {"plugin_socket": str(sm.socket_path), "poll_seconds": 0.1},
        }
        site = LoopSite(folder, fabric, sm, slurm, settings, port)
        if opensm["plugin"]:
            assert wait_until(
                lambda: sm.socket_path.exists() and is_primed(site.bridge.status()), 30
            )
        try:
            yield site
        finally:
            for daemon in site.daemons:
                daemon.kill()
                daemon.wait()


def assert_no_credit_loop(site: LoopSite) -> None:
    """ibdmchk finds no credit loop in OpenSM's own dumps."""
    sweeps = site.bridge.status().heavy_sweeps
    for old in site.sm.dump_dir.iterdir():
        old.unlink()
    site.sm.sweep()
    dump = site.sm.dump_dir
    needed = [dump / name for name in ("opensm-subnet.lst", "opensm.fdbs", "opensm.mcfdbs")]
    assert wait_until(
        lambda: site.bridge.status().heavy_sweeps > sweeps and all(p.exists() for p in needed), 30
    )
    run = site.fabric.run(
        "ibdmchk", "-s", str(needed[0]), "-f", str(needed[1]), "-m", str(needed[2])
    )
    assert "no credit loops found" in run.stdout, run.stdout
