"""Failures under a stock OpenSM with the plugin, beside a live agent and after its death.

OpenSM begins with a routes file, as at a site. Otherwise its next engine would route first, and at
11,664 hosts that takes longer than all failures. Each row is printed as soon as it is measured.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from sar_agent.errors import Unavailable
from sar_agent.fabric import Fabric
from sar_agent.fabric.ibsim_net import net_ids
from sar_lab.live.agent import AT_ONCE
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import wait_for
from tests.bench.bench_fabrics import LARGEST, MIDDLE, fabric_of, size_of
from tests.bench.failure_watch import FailureWatch
from tests.bench.opensm_on_ibsim import opensm_with_plan
from tests.bench.table import Table
from tests.worlds.fake_squeue import fake_squeue
from tests.worlds.live.agent_process import CLI
from tests.worlds.live.built import ROOT

START = 600.0
FAILURE = 300.0
"""Seconds that OpenSM and the agent may take to start, and for a failure."""
INTERVAL = 0.002
PASSED = ("is in force", "going on from them", "on the same fabric")
"""What the agent logs of its first pass."""
JOBS = 40
COLUMNS = (
    "failure", "OpenSM has noticed, s", "computed, s", "repair, ms", "hosts served, s",
    "confirmed, s", "entries", "LFT blocks", "steps", "engines", "agent, s", "agent",
    "load average",
)  # fmt: skip


def tables(full: bool) -> Iterator[Table]:
    """A table for each size."""
    for name in (MIDDLE, LARGEST) if full else (MIDDLE,):
        yield _table(fabric_of(name), name)


def _table(fabric: Fabric, name: str) -> Table:
    table = Table(
        f"Failures in OpenSM, {size_of(fabric)}",
        COLUMNS,
        f"`{name}`, sar-plus, `routing_engine sar,updn`, `qos FALSE`, ibsim, {JOBS} jobs. The "
        "agent is killed before the upper half, and runs again during the lower half. Noticed: "
        "from the failure to the start of OpenSM's routing. All other times count from there, "
        f"as `status` showed them every {1000 * INTERVAL:g} ms. Hosts served: all switches have "
        "confirmed a repair that drops no packets of hosts. Confirmed: also the second step, "
        "which is for management traffic and begins when packets of older tables are gone (some "
        "8 s). Entries and steps: the plugin's. Blocks: all that "
        "OpenSM sent, also for what the agent installed. Engines: all that OpenSM's log or "
        "`status` named. Agent: when its history tells of the failure, and what it did, with "
        "the entries changed (`followed` installs nothing; it counts the entries that differ "
        "from the plan; `answered` a call: OpenSM's routing waited for it, and `computed` has "
        "this wait).",
    )  # fmt: skip
    folders = tempfile.TemporaryDirectory(prefix="sar-bench-")
    with opensm_with_plan(fabric, START) as (ibsim, manager), folders as folder:
        watch = FailureWatch(manager, FAILURE, INTERVAL)
        with _agent(Path(folder), fabric, manager) as process:
            process.send_signal(signal.SIGKILL)
            process.wait()
        _fail(table, fabric, ibsim, watch, ", agent killed")
        with _agent(Path(folder), fabric, manager):
            watch.history = Path(folder) / "state"
            _fail(table, fabric, ibsim, watch, "")
    return table


def _fail(table: Table, fabric: Fabric, ibsim: Ibsim, watch: FailureWatch, when: str) -> None:
    for what, act in _failures(fabric, ibsim):
        what += when
        try:
            seen = watch.over(what, act)
        except Unavailable as error:
            print(error, flush=True)
            table.goals.append(f"{error}; the failures after it were not tried")
            return
        cells = (
            what,
            *(f"{seconds:.3f}" for seconds in (seen.began, seen.computed)),
            f"{seen.milliseconds:.1f}",
            f"{seen.served:.3f}",
            f"{seen.confirmed:.3f}",
            f"{seen.entries:,}",
            f"{seen.blocks:,}",
            str(seen.steps),
            seen.engines,
            f"{seen.followed:.3f}" if seen.agent else "",
            seen.agent,
            f"{os.getloadavg()[0]:.1f}",
        )
        table.add(*cells)
        print(" | ".join(cells), flush=True)


def _failures(fabric: Fabric, ibsim: Ibsim) -> Iterator[tuple[str, Callable[[], None]]]:
    """Each failure, and its end."""
    names = net_ids(fabric)[0]
    leaf = int(fabric.terminal_switch[-1])  # OpenSM is on another one
    bears = np.zeros(fabric.switches, np.bool_)
    bears[fabric.terminal_switch] = True
    above = ~bears
    for c in np.flatnonzero(bears[fabric.channel_source]):
        above[fabric.channel_target[c]] = False
    spine = int(np.flatnonzero(above)[0]) if above.any() else int(np.flatnonzero(~bears)[0])
    drawn = np.random.default_rng(1).choice(np.flatnonzero(fabric.channel_up), 4, replace=False)
    first = int(np.flatnonzero(fabric.channel_source == leaf)[0])

    def ends(channels: list[int]) -> list[tuple[str, int]]:
        return [(names[fabric.channel_source[c]], int(fabric.channel_port[c])) for c in channels]

    def of(switch: int) -> list[int]:
        return [int(c) for c in np.flatnonzero(fabric.channel_source == switch)]

    for what, channels in (
        ("one cable", [first]),
        ("four cables", [int(c) for c in drawn]),
        ("a spine switch", of(spine)),
        ("a leaf switch", of(leaf)),
    ):
        cables = ends(channels)
        yield what, partial(_each, ibsim.unlink, cables)
        yield f"{what}, back", partial(_each, ibsim.relink, cables)


def _each(act: Callable[[str, int], None], cables: list[tuple[str, int]]) -> None:
    for node, port in cables:
        act(node, port)


@contextmanager
def _agent(folder: Path, fabric: Fabric, manager: OpenSM) -> Iterator[subprocess.Popen[bytes]]:
    """`sar-agent run` in install mode, after its first install; a script is its squeue."""
    hosts, started = sorted(fabric.hosts), "1795221989"
    jobs = [
        {"%i": str(n), "%A": str(n), "%N": ",".join(hosts[n::JOBS]), "%S": started}
        for n in range(JOBS)
    ]
    sections: dict[str, dict[str, object]] = {
        "agent": {
            "state_dir": str(folder / "state"),
            "run_dir": str(manager.run_dir),
            "mode": "install",
            "metrics_address": "",
            **AT_ONCE,
        },
        "slurm": {"squeue": [fake_squeue(folder, jobs)], "topology_conf": ""},
        "opensm": {"plugin_socket": str(manager.socket_path)},
    }
    config, log = folder / "sar-agent.toml", folder / "log"
    config.write_text(
        "\n".join(
            f"[{name}]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in keys.items())
            for name, keys in sections.items()
        )
    )
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*CLI, "run", "--config", str(config)],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stderr=out,
        )
    try:
        wait_for(
            lambda: any(words in log.read_text() for words in PASSED),
            START,
            "the agent's first pass",
            alive=lambda: process.poll() is None,
            last_words=log.read_text,
        )
        yield process
    finally:
        process.kill()
        process.wait()
