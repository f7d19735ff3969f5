"""A real Slurm with many nodes on one machine: one slurmctld and a slurmd for every node.

Node lists, topology/tree and SPANK hooks are real; 16 nodes are idle within about a second.
Debian's slurm-wlm is built with the necessary option (`multiple-slurmd`).
"""

from __future__ import annotations

import getpass
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sar_agent.errors import SarError
from sar_agent.slurm.topology_conf import read_topology_conf
from sar_agent.util.hostlist import expand
from sar_lab.live.leftovers import ended_with_this_process
from sar_lab.live.munge_daemon import MungeDaemon
from sar_lab.live.process import Daemon, free_port, patience, require, wait_until

_CONF = """\
ClusterName=sar
SlurmctldHost=localhost({address})
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={socket}
CredType=cred/munge
{listening}StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
TmpFS={folder}/tmp/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/spool/%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
PlugStackConfig={folder}/plugstack.conf
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=1
SlurmdParameters=config_overrides
TopologyPlugin=topology/tree
ReturnToService=2
MailProg=/bin/true
PrologFlags=Alloc
MaxArraySize=10001
MaxJobCount=20000
PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe={sharing}
"""
_LOOPBACK_ONLY = "CommunicationParameters=NoCtldInAddrAny,NoInAddrAny\n"
_NODE = "NodeName={} NodeAddr={} NodeHostname=localhost Port={} CPUs=4 RealMemory=1000\n"


@dataclass(frozen=True)
class Place:
    """Where a daemon of Slurm runs."""

    enter: tuple[str, ...] = ()
    """Words before its command, by which it enters a network, such as those of nsenter."""
    address: str = "127.0.0.1"
    """At which the others reach it."""


_HERE = Place()


class SlurmCluster:
    """`with SlurmCluster("n[001-016]", leaf_size=4) as slurm:` – all nodes are idle inside.

    `nodes` is a host list (16 nodes if not given) and `leaf_size` of them are connected to
    each of the leaves `leaf1`, `leaf2`, … under `spine1`. Or `topology` is the text of a
    topology.conf, and `nodes` are by default all that it names.
    `controller` is where slurmctld and Slurm's commands run, `hosts` are the places of the nodes.
    `scratch` is the folder that is removed where this process is killed, by default its own.
    `shared`: several jobs may share a node (each job gets one of four cores); otherwise a job has
    its nodes alone. `plugstack` and `extra` are text for plugstack.conf and lines for slurm.conf.
    Raises SarError if a Debian package is missing or the cluster does not start.
    """

    def __init__(
        self,
        nodes: str | None = None,
        leaf_size: int = 4,
        topology: str | None = None,
        *,
        shared: bool = False,
        plugstack: str = "",
        extra: str = "",
        controller: Place = _HERE,
        hosts: Sequence[Place] | None = None,
        scratch: Path | None = None,
    ) -> None:
        self.folder = Path()
        self.munge_socket = Path()
        if nodes is None:
            nodes = "n[001-016]" if topology is None else ""
        self.nodes = expand(nodes)
        self._topology = _tree(self.nodes, leaf_size) if topology is None else topology
        self._shared, self._plugstack, self._extra = shared, plugstack, extra
        self._place, self._hosts, self._scratch = controller, hosts, scratch
        self._stack = ExitStack()
        self._controller: Daemon | None = None
        self._slurmds: list[Daemon] = []

    @property
    def conf(self) -> Path:
        """slurm.conf; topology.conf (`topology_conf`) is in the same folder."""
        return self.folder / "slurm.conf"

    @property
    def topology_conf(self) -> Path:
        """The topology.conf of slurmctld; after a change call `run("scontrol", "reconfigure")`."""
        return self.folder / "topology.conf"

    @property
    def plugstack_conf(self) -> Path:
        """The file of SPANK plugins; changed arguments apply to the next job, without a restart."""
        return self.folder / "plugstack.conf"

    @property
    def enter(self) -> tuple[str, ...]:
        """Words before a command by which it reaches slurmctld."""
        return self._place.enter

    def env(self) -> dict[str, str]:
        """The environment that connects Slurm's commands to this cluster."""
        return os.environ | {"SLURM_CONF": str(self.conf)}

    def __enter__(self) -> SlurmCluster:
        require("slurm-wlm", "slurmctld", "slurmd", "scontrol", "salloc")
        with self._stack as stack:
            self.folder = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="sar-slurm-"))
            )
            self.folder.chmod(0o755)  # commands of other users read slurm.conf
            self.munge_socket = stack.enter_context(MungeDaemon()).socket
            self._write_files(self.munge_socket)
            mark = f"SLURM_CONF={self.conf}"
            stack.enter_context(ended_with_this_process(mark, self._scratch or self.folder))
            stack.callback(self._stop)
            self.start_controller()
            self._start_nodes()
            self.wait_idle(30 + len(self.nodes) / 10)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def start_controller(self) -> None:
        """Start slurmctld (again); returns when it answers."""
        self._controller = Daemon(
            [*self.enter, "/usr/sbin/slurmctld", "-D"],
            self.folder / "log" / "slurmctld.out",
            self.env(),
        )
        if not wait_until(lambda: self._pings() or not self._running(), 30):
            raise SarError(f"slurmctld does not answer: {self._controller.tail()}")
        self._controller.check()

    def stop_controller(self) -> None:
        """Stop slurmctld; jobs continue."""
        if self._controller:
            self._controller.stop(10)

    def restart_nodes(self) -> None:
        """Restart all slurmd; jobs continue. A slurmd reads some settings only at its start, such
        as whether plugstack.conf has plugins with a prolog."""
        for slurmd in self._slurmds:
            slurmd.signal(15)
        for slurmd in self._slurmds:
            slurmd.stop(10)
        self._start_nodes()

    def wait_idle(self, seconds: float = 30.0) -> None:
        """Wait until all nodes are idle. Raises SarError if they are not in time."""

        def idle() -> bool:
            states = self.run("sinfo", "-h", "-N", "-o", "%T").split()
            return states.count("idle") == len(self.nodes)

        if not wait_until(idle, seconds, pause=0.1):
            for slurmd in self._slurmds:
                slurmd.check()
            states = self.run("sinfo", "-h", "-o", "%T %N").strip().replace("\n", ", ")
            raise SarError(f"Slurm's nodes are not all idle after {seconds:g} s: {states}")

    def run(self, *command: str, timeout: float = 60.0, user: str | None = None) -> str:
        """The output of a Slurm command. `user` runs it, in / (root only). Raises SarError if it
        fails or takes too long."""
        return self._run(command, timeout, user=user).stdout

    def salloc(self, nodes: int | str, *options: str, user: str | None = None) -> str:
        """Start a job without any process on `nodes` (a number or a host list); returns its id.

        Further options of salloc may follow, also `":", "-N2"` for further components.
        """
        where = [f"-N{nodes}"]
        if isinstance(nodes, str):
            where = [f"-N{len(expand(nodes))}", "-w", nodes]
        done = self._run(("salloc", "--no-shell", *where, *options), 60.0, user=user)
        granted = re.search(r"Granted job allocation (\d+)", done.stderr)
        if not granted:
            raise SarError(f"salloc granted no allocation: {done.stderr.strip()}")
        return granted.group(1)

    def scancel(self, *jobs: str) -> None:
        """Cancel jobs; returns when all of them have ended."""
        self.run("scancel", *jobs)
        listed = ("squeue", "-h", "-t", "R,CF,CG,PD,S", "-j", ",".join(jobs))

        def gone() -> bool:
            # The exit code is 1 once Slurm has forgotten the jobs.
            return not self._run(listed, 60.0, check=False).stdout.strip()

        if not wait_until(gone, 30):
            raise SarError(f"Slurm did not end jobs {', '.join(jobs)} within 30 s")

    def squeue(self, *options: str) -> str:
        """The output of squeue, by default for all jobs in any state, with bars between columns."""
        return self.run("squeue", *(options or ("-h", "-t", "all", "-o", "%i|%T|%N")))

    def _run(
        self, command: tuple[str, ...], timeout: float, check: bool = True, user: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        timeout *= patience()
        try:
            done = subprocess.run(
                [*self.enter, *command],
                capture_output=True,
                text=True,
                timeout=timeout,
                env=self.env(),
                cwd="/" if user else self.folder,  # sbatch writes slurm-*.out here
                user=user,
            )
        except subprocess.TimeoutExpired as error:
            raise SarError(f"{' '.join(command)}: no answer within {timeout:g} s") from error
        if check and done.returncode:
            message = " ".join((done.stderr or done.stdout).split())
            raise SarError(f"{' '.join(command)} failed: {message}")
        return done

    def _start_nodes(self) -> None:
        # The name must be slurmd: as slurmd-wlm it silently runs no prologs.
        command = ("/usr/sbin/slurmd", "-D", "-N")
        log = self.folder / "log" / "slurmd.out"
        self._slurmds = [
            Daemon([*place.enter, *command, node], log, self.env())
            for node, place in zip(self.nodes, self._places(), strict=True)
        ]

    def _places(self) -> Sequence[Place]:
        return [_HERE] * len(self.nodes) if self._hosts is None else self._hosts

    def _running(self) -> bool:
        return self._controller is not None and self._controller.alive()

    def _pings(self) -> bool:
        return "is UP" in self._run(("scontrol", "ping"), 30.0, check=False).stdout

    def _write_files(self, socket: Path) -> None:
        (self.folder / "state").mkdir()
        (self.folder / "spool").mkdir()
        (self.folder / "log").mkdir()
        self.topology_conf.write_text(self._topology)
        if not self.nodes:
            self.nodes = tuple(read_topology_conf(self.topology_conf).leaves_of)
        for node in self.nodes:
            (self.folder / "tmp" / node).mkdir(parents=True)
        port = free_port(len(self.nodes) + 1)
        text = _CONF.format(
            address=self._place.address,
            # Whatever listens in a network of its own is not reached from outside of it.
            listening=_LOOPBACK_ONLY if self._place == _HERE else "",
            port=port,
            user=getpass.getuser(),
            socket=socket,
            folder=self.folder,
            sharing="NO" if self._shared else "EXCLUSIVE",
        )
        for number, (node, place) in enumerate(zip(self.nodes, self._places(), strict=True), 1):
            text += _NODE.format(node, place.address, port + number)
        self.conf.write_text(text + self._extra)
        self.plugstack_conf.write_text(self._plugstack)
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")

    def _stop(self) -> None:
        daemons = [*self._slurmds, *([self._controller] if self._controller else [])]
        if self._running():  # so that Slurm ends the processes of jobs
            self._run(("scancel", "--user", getpass.getuser()), 10.0, check=False)
            wait_until(lambda: not self._run(("squeue", "-h"), 10.0, check=False).stdout, 2)
        for daemon in daemons:
            daemon.signal(15)
        end = time.monotonic() + 5  # for all daemons: a slurmd may run long after SIGTERM
        for daemon in daemons:
            daemon.stop(max(0.0, end - time.monotonic()))


def _tree(nodes: tuple[str, ...], leaf_size: int) -> str:
    leaves = [nodes[at : at + leaf_size] for at in range(0, len(nodes), leaf_size)]
    lines = [f"SwitchName=leaf{n} Nodes={','.join(leaf)}" for n, leaf in enumerate(leaves, 1)]
    lines.append(f"SwitchName=spine1 Switches=leaf[1-{len(leaves)}]")
    return "\n".join(lines) + "\n"
