"""The parts of a shadow week, and its steps (`tests.bench.shadow_week`)."""

from __future__ import annotations

import base64
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sar_agent.agent.build import build_agent
from sar_agent.agent.loop import Agent
from sar_agent.config.model import parse_config
from sar_agent.fabric.ibsim_net import net_ids
from sar_lab.history.job_history import JobHistory
from sar_lab.live.generated import ibsim_for
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import free_port, wait_for
from sar_lab.mixes.replay_inputs import fabric_of, history_of
from tests.bench.shadow_week import EXAMPLES, JumpingClock
from tests.worlds.live.agent_process import write_config

DAY = 86400.0
HOOK_SECONDS = 5.0
"""From a change of the queue until the agent looks, as with Slurm's hooks and the default
`debounce_seconds`."""
INTERVAL_SECONDS = 300.0
DUMPS = 0x43
"""OpenSM's log flags: errors, information and opensm-lfts.dump."""
USERS = ("ada", "edsger", "grace", "john", "kathleen")
"""Histories name no users, so jobs get made-up ones."""
WIDTHS = (1280, 400)
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


@dataclass(frozen=True)
class QueueJob:
    """A job of the replayed queue; times are Unix seconds."""

    id: str
    start: float
    end: float
    nodes: tuple[str, ...]

    def line(self) -> str:
        """As `squeue -o '%i|%T|%N|%P|%u|%a|%D|%S|%k'` prints it."""
        began = datetime.fromtimestamp(self.start).isoformat(timespec="seconds")
        user = USERS[sum(self.id.encode()) % len(USERS)]
        return (
            f"{self.id}|RUNNING|{','.join(self.nodes)}|batch|{user}|all|{len(self.nodes)}|{began}|"
        )


def queue_of(history: JobHistory, begin: float, hours: float) -> list[QueueJob]:
    """The jobs of `hours` from `begin` on: those of the history, at their times of day."""
    first, last = history.span
    period = DAY * max(1, math.ceil((last - first) / DAY))
    shift = _midnight(begin) - _midnight(first)
    jobs = []
    for round in range(math.ceil(hours * 3600 / period) + 1):
        for j, id in enumerate(history.ids):
            start, end = (
                float(t[j]) + shift + round * period for t in (history.start, history.end)
            )
            if end > begin and start < begin + hours * 3600:
                hosts = tuple(history.hosts[h] for h in history.hosts_of(j))
                jobs.append(QueueJob(str(round * 100_000 + int(id)), start, end, hosts))
    return jobs


def run_week(
    clock: JumpingClock, hours: float, fabric: str, history: str, engine: str, out: Path
) -> str:
    """Run the agent for `hours` and write its pages into `out`, which is emptied; returns the
    address of its live page."""
    began, took = clock.time(), time.perf_counter()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    jobs = queue_of(history_of(history), began, hours)
    with _site(out.absolute(), fabric, engine, began) as (agent, port):
        results = _passes(clock, agent, out / "queue/squeue.txt", jobs, began + hours * 3600)
        page = f"http://127.0.0.1:{port}/"
        (out / "metrics.txt").write_bytes(_open(f"{page}metrics").read())
        (out / "state.json").write_bytes(_open(f"{page}api/state.json").read())
        _picture(page, out, "live")
        _week(out)
        _picture((out / "week/index.html").absolute().as_uri(), out, "week")
    took = time.perf_counter() - took
    counts = ", ".join(f"{n} {result}" for result, n in sorted(results.items()))
    print(f"{hours:g} h of {len(jobs)} jobs in {took:.0f} s; passes: {counts}")
    print(f"in {out}: {', '.join(sorted(p.name for p in out.iterdir()))}")
    return page


@contextmanager
def _site(out: Path, spec: str, engine: str, began: float) -> Iterator[tuple[Agent, int]]:
    """ibsim, OpenSM and an agent that has done no pass, with the port of its page."""
    fabric, _ = fabric_of(spec)
    names = net_ids(fabric)[1]
    hosts = [names[t] for t in fabric.is_host_port.nonzero()[0][:2]]
    with ExitStack() as stack:
        ibsim = stack.enter_context(ibsim_for(fabric))
        manager = stack.enter_context(
            OpenSM(ibsim, host=hosts[0], routing_engine=engine, log_flags=DUMPS)
        )
        manager.wait_up()
        dump = manager.dump_dir / "opensm-lfts.dump"
        wait_for(dump.exists, 60, "OpenSM's dump")
        os.utime(dump, (began, began))
        shutil.copytree(EXAMPLES, out / "queue", ignore=lambda _, all: {*all} - {"squeue"})
        port = free_port()
        env = ibsim.env(hosts[1])
        sections: dict[str, dict[str, Any]] = {
            "agent": {
                "mode": "observe",
                "interval_seconds": INTERVAL_SECONDS,
                "state_dir": str(out / "state"),
                "run_dir": str(out / "run"),
                "metrics_address": f"127.0.0.1:{port}",
            },
            "slurm": {"squeue": [str(out / "queue/squeue")], "topology_conf": ""},
            "fabric": {
                "environment": {k: v for k, v in env.items() if os.environ.get(k) != v},
                "refresh_seconds": 3600,
            },
            "opensm": {"lfts_dump": str(dump), "plugin_socket": str(out / "run/bridge.sock")},
        }
        (out / "run").mkdir()
        text = write_config(out, sections).read_text()
        agent = build_agent(parse_config(text), daemon=True)
        agent.metrics.serve("127.0.0.1", port)
        yield agent, port


def _passes(
    clock: JumpingClock, agent: Agent, queue: Path, jobs: list[QueueJob], end: float
) -> Counter[str]:
    """Pass after pass until `end`; how often each result was."""
    changes = sorted({t for job in jobs for t in (job.start, job.end)})
    found: Counter[str] = Counter()

    def look(now: float) -> None:
        running = [job for job in jobs if job.start <= now < job.end]
        queue.write_text("".join(f"{job.line()}\n" for job in running))
        agent.pacing.begin()
        found[agent.pass_once().result.value] += 1
        agent.pacing.end()

    while (now := clock.time()) < end:
        look(now)
        event = next((t + HOOK_SECONDS for t in changes if t > now), end)
        clock.go_to(min(event, clock.time() + agent.pacing.left(), end))
    clock.catch_up()
    look(clock.time())
    return found


def _week(out: Path) -> None:
    """The page of the week, by the command that a site types."""
    command = [sys.executable, "-c", "from sar_agent.cli import main; main()", "assess"]
    words = ["--history", str(out / "state"), "--out", str(out / "week")]
    done = subprocess.run([*command, *words], capture_output=True, text=True)
    print((done.stdout + done.stderr).strip())
    done.check_returncode()


def _picture(address: str, out: Path, name: str) -> None:
    """Pictures of a page in Chromium, where it is installed: the whole page, at two widths."""
    try:
        from tests.worlds.live.browser import DRIVER, chromium
    except ImportError:
        return
    if not Path(DRIVER).exists():
        return
    for width in WIDTHS:
        with tempfile.TemporaryDirectory() as folder, chromium(Path(folder), width) as browser:
            browser.get(address)
            time.sleep(2)
            shot = browser.execute_cdp_cmd(
                "Page.captureScreenshot", {"captureBeyondViewport": True, "format": "png"}
            )
            (out / f"{name}-{width}.png").write_bytes(base64.b64decode(shot["data"]))
            wide = browser.execute_script("return document.documentElement.scrollWidth")
            print(f"{name} at {width} px: the page is {wide} px wide")


def _midnight(moment: float) -> float:
    day = datetime.fromtimestamp(moment)
    return day.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
