"""A hundred hostile clients for a minute: passes go on, a dead cable is repaired, memory is flat.

OpenSM, ibsim, munged and the agent are real, and each client is a process of a uid of its own with
real credentials (tests/worlds/live/hostile.py); only Slurm's queue is a stand-in, since no cluster
here has a hundred users. Figures are printed; only end states are asserted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sar_lab.live.munge_daemon import MungeDaemon
from sar_lab.live.process import free_port, wait_until
from tests.worlds.fake_squeue import fake_squeue
from tests.worlds.live import readback
from tests.worlds.live.built import ROOT
from tests.worlds.live.hostile import FIRST_JOB, FIRST_UID, KINDS, dear_keys
from tests.worlds.live.loop import LoopSite, loop_site
from tests.worlds.live.munged import Encoder, message, tell

CLIENTS, SECONDS = 100, float(os.environ.get("SAR_HOSTILE_SECONDS", "60"))
pytestmark = [
    pytest.mark.live,
    pytest.mark.long,
    pytest.mark.skipif(os.getuid() != 0, reason="speaks as many users"),
]


class FakeSlurm:
    """What `loop_site` asks of a cluster."""

    topology_conf, conf = "", "/dev/null"

    def env(self) -> dict[str, str]:
        return dict(os.environ)


def jobs() -> list[dict[str, str]]:
    """One of an honest user, and two hosts' worth for each client that has a job of its own."""
    owners = [n for n in range(CLIENTS) if KINDS[n % len(KINDS)] is dear_keys]
    hosts = [f"n{1 + n % 8:03d},n{9 + n % 8:03d}" for n in range(len(owners))]
    hostile = [
        {"%i": str(FIRST_JOB + n), "%A": str(FIRST_JOB + n), "%N": two, "%U": str(FIRST_UID + n)}
        for n, two in zip(owners, hosts, strict=True)
    ]
    return [{"%i": "7", "%A": "7", "%N": "n[001,005,009,013]", "%U": "0"}, *hostile]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[LoopSite, Path, int, Path]]:
    slurm: Any = FakeSlurm()
    with (
        MungeDaemon() as munge,
        tempfile.TemporaryDirectory(prefix="sar-hostile-") as public,
        loop_site(tmp_path, slurm, options={"lmc": "3"}) as made,
    ):
        Path(public).chmod(0o711)
        unix, port = Path(public) / "events.sock", free_port()
        made.settings["slurm"] = {
            "topology_conf": "",
            "squeue": [fake_squeue(tmp_path, jobs(), 0.04)],
        }
        made.settings["events"] = {
            "munge_socket": str(munge.socket),
            "tcp_address": f"127.0.0.1:{port}",
            "socket": str(unix),
        }
        made.settings["agent"]["interval_seconds"] = 2
        made.start()
        made.wait_installed(seconds=240)
        assert wait_until(unix.exists, 60)
        yield made, unix, port, munge.socket


def memory(site: LoopSite) -> float:
    """Resident, MB."""
    pid = site.daemons[0].pid
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


def repair(site: LoopSite) -> float:
    """Seconds from a cable's death until routes without it are in force and on record. With LMC 3
    they have several lanes, so OpenSM asks the agent for them."""
    site.wait_installed()
    rows = len(site.rows())
    start = time.monotonic()
    site.fabric.unlink("S1-0", 5)
    site.sm.sweep()

    def recorded(more: int) -> bool:
        status = site.bridge.status()
        return (
            status.engine_in_force == "sar" and status.settled and len(site.rows()) >= rows + more
        )

    assert wait_until(lambda: recorded(1), 240, 0.05), site.log()[-5000:]
    seconds = time.monotonic() - start
    leaf = int(site.plan().switch_guids[leaves(site).index("S1-0")])
    tables = readback.installed(site.fabric)
    assert not any(port == 5 for (switch, _), port in tables.items() if switch == leaf)
    site.fabric.relink("S1-0", 5)
    site.sm.sweep()
    assert wait_until(lambda: recorded(2), 240, 0.05), site.bridge.status()
    return seconds


def leaves(site: LoopSite) -> list[str]:
    """Names of the plan's switches, in its order."""
    from sar_agent.fabric.spec import load_fabric
    from tests.worlds.live.loop import FABRIC

    fabric = load_fabric(FABRIC)
    names = dict(zip(fabric.switch_guid.tolist(), fabric.switch_name, strict=True))
    return [names[guid] for guid in site.plan().switch_guids.tolist()]


def test_a_hundred_hostile_clients(site: tuple[LoopSite, Path, int, Path]) -> None:
    here, unix, port, munge = site
    encode = Encoder(munge)
    quiet = repair(here)
    at_first, passes = memory(here), here.metrics()["sar_agent_stage_seconds_count", "slurm"]
    script = ROOT / "tests/worlds/live/hostile.py"
    clients = subprocess.Popen(
        [sys.executable, str(script), str(unix), str(port), str(munge), str(CLIENTS), str(SECONDS)],
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
    )
    try:
        course: list[float] = []

        def watch() -> None:
            while clients.poll() is None:
                course.append(memory(here))
                time.sleep(SECONDS / 12)

        watcher = threading.Thread(target=watch)
        watcher.start()
        time.sleep(SECONDS / 6)
        stormy = repair(here)
        heard = [tell(unix, encode(message(job=str(n))))["ok"] for n in range(20)]
        watcher.join()
        said = json.loads(clients.communicate()[0])
    finally:
        clients.kill()
        clients.wait()
    after = here.metrics()
    more = after["sar_agent_stage_seconds_count", "slurm"] - passes
    refused = {
        name[1]: n for name, n in after.items() if name[0] == "sar_agent_events_refused_total"
    }
    print(f"\n{sum(said.values())} messages of {CLIENTS} clients in {SECONDS:.0f} s: {said}")
    print(f"refused, by reason: { {why: int(n) for why, n in refused.items() if n} }")
    print(f"a dead cable was repaired in {quiet:.1f} s in quiet, in {stormy:.1f} s meanwhile")
    print(f"{sum(heard)} of {len(heard)} messages of root were answered with ok meanwhile")
    print(
        f"{more:.0f} passes, {len(here.log()) / 1e3:.0f} kB of log; memory {at_first:.0f} MB,"
        f" then {' '.join(f'{one:.0f}' for one in course)}, {memory(here):.0f} MB at the end"
    )
    assert sum(said.values()) > 1000 and more >= 5
    assert sum(heard) >= 1, "root is heard"
    assert {"too_many", "garbage"} <= {why for why, n in refused.items() if n}
    unexpected = {
        name: n for name, n in after.items() if name[0] == "sar_agent_unexpected_errors_total"
    }
    assert not any(unexpected.values()), unexpected
    assert "Traceback" not in here.log()
    assert max(course) < at_first + 400, "bounded, whatever they say"
    assert here.daemons[0].poll() is None
    repair(here)
    assert tell(unix, encode(message()))["ok"], "as before"
