"""Everything that runs: ibsim, OpenSM, the emulated fabric, Slurm in it, and the agent."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path

from sar_agent.commands.config_file import changed_keys
from sar_agent.config.model import load_config
from sar_agent.fabric import Fabric
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.opensm.plugin_client import PluginClient
from sar_lab.emulate.command_runner import no_spin
from sar_lab.emulate.live.followed import FollowedTables
from sar_lab.emulate.live.mpi_jobs import MpiJobs
from sar_lab.emulate.namespaces import MANAGEMENT, EmulatedFabric, Namespace
from sar_lab.emulate.runner import compiled
from sar_lab.emulate.tables import EmulatedTables
from sar_lab.live.agent import AgentProcess
from sar_lab.live.generated import ibsim_for
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.opensm import OpenSM
from sar_lab.live.requirements import plugin, spank_plugin
from sar_lab.live.slurm import Place, SlurmCluster

HOSTS_PER_LEAF, LEAVES, SPINES = 4, 4, 4
ENGINES = "sar,ftree,updn"
"""Of OpenSM: with no routes of the agent, ftree."""
DUMP_FILES = 0x43
"""OpenSM's log flags: errors, information, and the files that ibdmchk reads."""
_PATIENT = {
    "ipv4/tcp_reordering": "300",
    "ipv4/tcp_recovery": "0",
    "ipv4/tcp_early_retrans": "0",
}
"""TCP of the hosts takes packets that overtake each other on a new way for what they are, and not
for lost ones: what it sends again was lost, or waited for longer than its timer."""
_TIMEOUT = 100
"""Milliseconds that a start of a job may wait for the agent, the most there is."""


@dataclass
class LiveSite:
    """What runs, and may be stopped and started again."""

    fabric: Fabric
    network: EmulatedFabric
    ibsim: Ibsim
    manager: OpenSM
    bridge: PluginClient
    followed: FollowedTables
    slurm: SlurmCluster
    jobs: MpiJobs
    agent: AgentProcess
    """Not started yet."""
    pulled: set[tuple[int, int]] = field(default_factory=set)
    """Switch and port at both ends of cables that are pulled."""

    def settings(self) -> str:
        """Settings of the agent that are not the defaults."""
        return ", ".join(changed_keys(load_config(self.agent.config)))

    def pull(self, switch: int, port: int) -> None:
        """The cable at a port: ibsim tells OpenSM, and packets on it are lost."""
        for end, name in self._ends(switch, port):
            self.network.switches[end].cut(f"p{name}")
            self.pulled.add((end, name))
        self.ibsim.unlink(self.fabric.switch_name[switch], port)

    def plug(self, switch: int, port: int) -> None:
        """Put the cable back."""
        for end, name in self._ends(switch, port):
            self.network.switches[end].mend(f"p{name}", self.network.rate)
            self.pulled.discard((end, name))
        self.ibsim.relink(self.fabric.switch_name[switch], port)

    def _ends(self, switch: int, port: int) -> list[tuple[int, int]]:
        """Switch and port of both ends."""
        fabric = self.fabric
        back = fabric.channel_reverse[fabric.channel_by_port[switch, port]]
        return [
            (switch, port),
            (int(fabric.channel_source[back]), int(fabric.channel_port[back])),
        ]


def start_site(
    stack: ExitStack, scratch: Path, rate: float, size: int, tell: Callable[[str], None]
) -> LiveSite:
    """Starts all but the agent; `stack` ends it. `rate`: bits a second of every cable, `size`:
    bytes that jobs sum up, `scratch`: the folder of all files. Raises `SarError`."""
    source = stack.enter_context(as_file(files("sar_lab.emulate.live") / "all_reduce.c"))
    program = stack.enter_context(compiled(source, compiler="mpicc", package="libopenmpi-dev"))
    library = stack.enter_context(no_spin())
    fabric = xgft_fabric(f"xgft:2;{HOSTS_PER_LEAF},{LEAVES};1,{SPINES}")
    network = stack.enter_context(EmulatedFabric(fabric, rate, management=True))
    tell(
        f"an emulated fabric: {fabric.terminals} hosts, {LEAVES} leaf and {SPINES} spine switches, "
        f"each a network of its own; cables carry {rate / 1e6:g} Mbit/s"
    )
    for host in network.hosts:
        host.configure(_PATIENT)
    ibsim = stack.enter_context(ibsim_for(fabric))
    manager = stack.enter_context(
        OpenSM(
            ibsim,
            host=fabric.terminal_host[0],
            plugin=plugin(),
            routing_engine=ENGINES,
            log_flags=DUMP_FILES,
        )
    )
    manager.wait_up()
    tell(f"ibsim and a stock OpenSM with our plugin are up, its engines are {ENGINES}")
    followed = FollowedTables(ibsim, fabric.terminal_host[1], EmulatedTables(network))
    slurm = stack.enter_context(_slurm(network, scratch))
    tell(f"a real Slurm is up: slurmctld, and a slurmd in each of the {fabric.terminals} hosts")
    agent = AgentProcess(manager, slurm)
    stack.push(agent)  # whoever starts it, it ends before what it uses
    spank = f"agent={agent.events} munge_socket={slurm.munge_socket} timeout={_TIMEOUT}"
    slurm.plugstack_conf.write_text(
        f"optional {spank_plugin()} {spank} state={slurm.folder}/answers\n"
    )
    jobs = MpiJobs(slurm, program, library, size)
    bridge = PluginClient(manager.socket_path)
    return LiveSite(fabric, network, ibsim, manager, bridge, followed, slurm, jobs, agent)


def _slurm(network: EmulatedFabric, scratch: Path) -> SlurmCluster:
    assert network.management
    names = network.fabric.terminal_host
    hosts = [
        Place(_enter(space, name), network.management_address(terminal))
        for terminal, (space, name) in enumerate(zip(network.hosts, names, strict=True))
    ]
    return SlurmCluster(
        f"n[001-{len(names):03d}]",
        HOSTS_PER_LEAF,
        plugstack=f"optional {spank_plugin()}\n",
        controller=Place(_enter(network.management), MANAGEMENT),
        hosts=hosts,
        scratch=scratch,
    )


def _enter(space: Namespace, name: str = "") -> tuple[str, ...]:
    """Words before a command that then runs in this network, on a host of this name."""
    words = ("nsenter", f"--net={space.path}")
    if not name:
        return words
    return (*words, "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', name)
