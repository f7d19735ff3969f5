"""The agent's processor time and memory over a day of 5,000 jobs: python -m tests.bench.agent_day.

An agent as `run` has it, with its defaults and `install` mode, beside a stock OpenSM with the
plugin on ibsim; only its clock jumps, from one thing that is due to the next. Slurm is a stand-in
whose changes are heard at once, as with hooks. What the daemon spends between passes is a status
every `poll_seconds`; it is timed by itself, and added for the rest of the time. In a row these are
quicker than after a sleep of `poll_seconds`, so a daemon with nothing to do takes more than that.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import Counter
from unittest import mock

import numpy as np

from tests.bench.shadow_week import JumpingClock

DAY, JOBS, MEAN_SECONDS, SEED = 86400, 5000, 1400.0, 1
ASKED = 200
BEGIN = 600
"""The first seconds, in which kernels are loaded. They are measured apart: a day has them once."""


def main() -> None:
    """Prints passes, CPU seconds and memory."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.agent_day", description=__doc__)
    parser.add_argument("--hours", type=float, default=24.0, help="of the day (24)")
    given = parser.parse_args()
    clock = JumpingClock(2 * DAY)
    with mock.patch.multiple(time, time=clock.time, monotonic=clock.monotonic):
        # Only now: many modules bind the clock's functions when they are imported.
        run(clock, given.hours)


def run(clock: JumpingClock, hours: float) -> None:
    """The first `hours` of the day."""
    from sar_agent.agent.build import build_agent
    from sar_agent.config.model import Config
    from sar_agent.fabric.hostnames import HostMapper
    from sar_agent.jobs.record import JobRecord
    from sar_agent.opensm.plugin_client import PluginClient
    from sar_agent.opensm.plugin_manager import PluginManager
    from tests.bench.bench_fabrics import MIDDLE, fabric_of, size_of
    from tests.bench.machine import peak_mb
    from tests.bench.opensm_on_ibsim import opensm_with_plan
    from tests.worlds.fake_opensm import FakeSource

    fabric, rng = fabric_of(MIDDLE), np.random.default_rng(SEED)
    free, running = set(fabric.hosts), list[tuple[float, JobRecord]]()
    with opensm_with_plan(fabric, 900.0) as (_, manager), tempfile.TemporaryDirectory() as folder:
        source = FakeSource(())
        keys = {
            "agent": {"mode": "install", "state_dir": folder, "run_dir": str(manager.run_dir)},
            "slurm": {"topology_conf": ""},
            "opensm": {"plugin_socket": str(manager.socket_path)},
        }
        plugin = PluginManager(PluginClient(manager.socket_path), manager.routes_path, HostMapper())
        config = Config.model_validate(keys, strict=False)
        agent = build_agent(config, plugin, source, daemon=True)
        agent.pass_once()
        results, jobs, due = Counter[str](), 0, clock.time()
        cpu, first, began = time.process_time(), 0.0, clock.time()
        while (now := clock.time()) < began + BEGIN + 3600 * hours:
            if now >= began + BEGIN and not first:
                first, cpu, jobs = time.process_time() - cpu, time.process_time(), 0
                results.clear()
            while due <= now:
                due += rng.exponential(DAY / JOBS)
                size = int(2 ** rng.uniform(1, 6))
                if len(free) >= size:  # the others would wait in the queue
                    hosts = rng.choice(sorted(free), size, replace=False).tolist()
                    free -= set(hosts)
                    jobs += 1
                    record = JobRecord(str(jobs), tuple(hosts), "RUNNING", start=int(now))
                    running.append((now + rng.exponential(MEAN_SECONDS), record))
                agent.pacing.heard(clock.monotonic())
            if any(end <= now for end, _ in running):
                free |= {h for end, record in running if end <= now for h in record.hosts}
                running = [each for each in running if each[0] > now]
                agent.pacing.heard(clock.monotonic())
            if not agent.pacing.left():
                source.records = tuple(record for _, record in running)
                agent.pacing.begin()
                results[agent.pass_once().result.value] += 1
                agent.pacing.end()
            ends = min((end for end, _ in running), default=due)
            clock.go_to(min(due, ends, clock.time() + agent.pacing.left()))
        spent = time.process_time() - cpu
        asked = time.process_time()
        for _ in range(ASKED):
            agent.ask_status()
        each = (time.process_time() - asked) / ASKED
    polls = 3600 * hours / config.opensm.poll_seconds
    passes = sum(results.values())
    said = ", ".join(f"{n} {result}" for result, n in sorted(results.items()))
    print(f"{size_of(fabric)}, {hours:g} h, {jobs} jobs: {passes} passes ({said})")
    print(
        f"the first {BEGIN} s {first:.1f} s CPU; passes {spent:.1f} s "
        f"({1000 * spent / max(1, passes):.1f} ms each), status polls "
        f"{each * polls:.1f} s ({1000 * each:.2f} ms each); a day: "
        f"{first + (spent + each * polls) * 24 / hours:.0f} s; peak memory {peak_mb():.0f} MB, "
        f"load average {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
