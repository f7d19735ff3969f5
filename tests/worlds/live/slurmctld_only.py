"""What the installed slurmctld says of a topology.conf: it is started without any slurmd.

A slurmctld alone is up in a second with a thousand nodes, where a cluster takes minutes.
"""

from __future__ import annotations

import getpass
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sar_agent.slurm.conf_lists import write_list
from sar_lab.live.process import Daemon, free_port, require, wait_until

_CONF = """\
ClusterName=sar
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
PlugStackConfig={folder}/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
TopologyPlugin=topology/{plugin}
PartitionName=batch Nodes=ALL Default=YES State=UP
"""


@dataclass(frozen=True)
class Heard:
    """`refused` is slurmctld's fatal sentence, "" if it took the file. `complaints` are its other
    lines about the topology; `shown` is the output of `scontrol show topology`."""

    refused: str
    complaints: tuple[str, ...]
    shown: str


def slurmctld_reads(topology: str, nodes: Sequence[str], plugin: str = "tree") -> Heard:
    """Starts slurmctld with the text as topology.conf of a plugin `topology/…`, and stops it again.
    Raises SarError where Slurm is not installed."""
    require("slurm-wlm", "slurmctld", "scontrol")
    with tempfile.TemporaryDirectory(prefix="sar-slurmctld-") as name:
        folder = Path(name)
        conf = _CONF.format(port=free_port(), user=getpass.getuser(), folder=folder, plugin=plugin)
        conf += "".join(
            f"NodeName={write_list([node])} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port}\n"
            for port, node in enumerate(nodes, 33000)  # nothing is bound to these
        )
        (folder / "slurm.conf").write_text(conf)
        (folder / "topology.conf").write_text(topology)
        environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
        log = folder / "slurmctld.log"
        daemon = Daemon(["/usr/sbin/slurmctld", "-D"], log, environment)
        shown = ""

        def answered() -> bool:
            nonlocal shown
            if not daemon.alive():
                return True
            done = subprocess.run(
                ["scontrol", "show", "topology"], env=environment, capture_output=True, text=True
            )
            shown = done.stdout if done.returncode == 0 else ""
            return bool(shown)

        try:
            wait_until(answered, 60, pause=0.2)
        finally:
            daemon.stop(10)
        lines = log.read_text().splitlines()
    fatal = [line for line in lines if "fatal:" in line]
    about = ("opology", "witch", "hostnames")
    told = [line for line in lines if any(word in line for word in about) and "rror" in line]
    return Heard(fatal[0] if fatal else "", tuple(told), shown)
