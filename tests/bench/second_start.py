"""The time of a whole `sar-agent once` on 1,728 hosts, with kernels compiled before.

The fabric is simulated; a script in place of squeue prints the jobs of a synthetic mix.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.fabric import Fabric
from sar_agent.fabric.ibsim_net import write_ibsim_net
from sar_agent.fabric.spec import load_fabric
from sar_lab.live.generated import ibsim_for
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.opensm import OpenSM
from tests.bench.opensm_on_ibsim import opensm
from tests.bench.table import Table, goal
from tests.bench.timing import Times
from tests.worlds.fake_squeue import fake_squeue

SPEC = "xgft:3;12,12,12;1,12,12"
RUNS = 5
APART = 8.0
"""Seconds between installs; sooner, one waits until packets sent by older tables are gone."""
_CONFIG = """\
[agent]
mode = "install"
state_dir = "{folder}/state"
run_dir = "{run}"
metrics_address = ""
[slurm]
squeue = ["{squeue}"]
topology_conf = ""
[opensm]
plugin_socket = "{socket}"
[fabric]
"""
_FILE = 'file = "{folder}/fabric.net"\n'
_COMMAND = 'command = ["env", "-C", "{scratch}", "ibnetdiscover"]\nenvironment = {{ {env} }}\n'


def tables(full: bool) -> Iterator[Table]:
    """Passes that install new routes, and passes without a change."""
    fabric = load_fabric(SPEC)
    table = Table(
        f"A second start of `sar-agent once`, {fabric.terminals:,} hosts",
        ("the fabric comes from", "the pass", "in all, s", "of that its CPU, s"),
        f"`{SPEC}`, a process from its start to its end: interpreter, imports, kernels from the "
        "cache, squeue (a script), fabric, OpenSM's plugin; and if the jobs changed (`mix:1` and "
        "`mix:2` alternately) routing, check, install, reading back. Installs are eight seconds "
        "apart: sooner, one waits until packets of older tables are gone.",
    )
    with (
        tempfile.TemporaryDirectory(prefix="sar-bench-") as folder,
        ibsim_for(fabric) as ibsim,
        opensm(ibsim, fabric, "sar,minhop", 600) as manager,
    ):
        write_ibsim_net(fabric, Path(folder) / "fabric.net")
        for name, source in (("a file", _FILE), ("ibnetdiscover", _COMMAND)):
            config = _write_config(Path(folder), ibsim, manager, fabric, source)
            fresh, idle, fresh_cpu, idle_cpu = Times(), Times(), Times(), Times()
            _queue(folder, fabric, 3)
            _once(config, "installed")  # compiles the kernels if necessary
            for run in range(RUNS):
                _queue(folder, fabric, run % 2 + 1)
                time.sleep(APART)
                with fresh.one():
                    fresh_cpu.append(_once(config, "installed"))
                with idle.one():
                    idle_cpu.append(_once(config, "nothing"))
            table.add(name, "installs new routes", fresh.show(".2f"), fresh_cpu.show(".2f"))
            table.add(name, "has nothing to do", idle.show(".2f"), idle_cpu.show(".2f"))
            for what, times, most in (("installing", fresh, 2), ("nothing to do", idle, 0.8)):
                table.goals.append(goal(f"{what}, fabric from {name}", times.median, most, "s"))
    yield table


def _queue(folder: str, fabric: Fabric, seed: int) -> str:
    """Writes a script in place of squeue; returns its path."""
    jobs = [
        {"%i": job.id, "%N": ",".join(fabric.terminal_host[t] for t in job.terminals)}
        for job in synthetic_mix(fabric, seed).jobs
    ]
    return fake_squeue(Path(folder), jobs)


def _write_config(folder: Path, ibsim: Ibsim, manager: OpenSM, fabric: Fabric, source: str) -> Path:
    names = ("LD_PRELOAD", "IBSIM_SOCKNAME", "SIM_HOST")
    given: Mapping[str, str] = ibsim.env(fabric.terminal_host[1])
    path = folder / "sar-agent.toml"
    path.write_text(
        (_CONFIG + source).format(
            folder=folder,
            run=manager.run_dir,
            squeue=_queue(str(folder), fabric, 1),
            socket=manager.socket_path,
            scratch=ibsim.scratch,
            env=", ".join(f"{name} = {json.dumps(given[name])}" for name in names),
        )
    )
    return path


def _once(config: Path, result: str) -> float:
    """Runs one process, which must have the expected result. Returns the CPU seconds of the process
    and its children."""
    main = "from sar_agent.cli import main; main()"
    command = [sys.executable, "-c", main, "once", "--json", "--config", str(config)]
    env = os.environ | {"PATH": f"{os.environ['PATH']}:/usr/sbin"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # a second start finds its bytecode, too
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    after = os.times()
    if not done.stdout or json.loads(done.stdout)["result"] != result:
        raise RuntimeError(f"not {result}: {done.stdout}{done.stderr}")
    return (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
