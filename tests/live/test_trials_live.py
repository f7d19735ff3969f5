"""Routes on trial with a stock OpenSM and its PerfMgr: what the ports of ibsim count follows the
routes in force, or does not; daemons and cables die in the middle."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.agent.trial_state import SavedTrial
from sar_agent.fabric.model import F64
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.conversion import file_to_routes
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.quality.channel_traffic import Traffic, traffic_of
from sar_lab.live.slurm import SlurmCluster
from tests.live.helpers.loop import FABRIC, LoopSite, loop_site
from tests.live.test_counters_live import PERFMGR, Counters

pytestmark = pytest.mark.live

TREE = load_fabric(FABRIC)
SHARE = 0.2
"""Of the links' speed, by a job at full weight."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    with SlurmCluster("n[001-016]", leaf_size=4) as cluster:
        yield cluster


class TrialSite:
    """Four jobs between the first two leaf switches, over two links; two of them, which share a
    link at first, send, the others hardly."""

    def __init__(self, site: LoopSite, cluster: SlurmCluster) -> None:
        self.site, self.counters = site, Counters(site, TREE)
        site.settings["counters"] = {
            "source": "plugin",
            "weights": "use",
            "weights_smoothing_seconds": 1,
            "trial_windows": 8,
        }
        self.jobs = {
            str(cluster.salloc(f"n00{i},n00{4 + i}")): [f"n00{i}", f"n00{4 + i}"]
            for i in (1, 2, 3, 4)
        }
        site.start()
        site.wait_installed()
        self.heavy: frozenset[str] = frozenset()
        traffic = self.traffic()
        for c in np.flatnonzero(TREE.channel_source == 0):
            at = np.flatnonzero(traffic.lists.channel[: traffic.lists.offset[-1]] == c)
            users = np.searchsorted(traffic.lists.offset, at, side="right") - 1
            if len(users) >= 2:
                self.heavy = frozenset(traffic.mix.jobs[int(j)].id for j in users[:2])
        assert self.heavy, "four jobs on two links"
        self.first = traffic.load * SHARE

    def traffic(self) -> Traffic:
        """What the jobs really send, over the routes that are in force."""
        mix = JobMix.of(
            replace(
                make_job(job, [t for host in hosts for t in TREE.hosts[host]]),
                weight=1.0 if job in self.heavy else 0.06,
            )
            for job, hosts in self.jobs.items()
        )
        return traffic_of(TREE, mix, file_to_routes(TREE, self.site.plan()))

    @property
    def trial(self) -> SavedTrial | None:
        path = self.site.state_dir / "trial.json"
        return SavedTrial.model_validate_json(path.read_bytes()) if path.exists() else None

    def count(self, until: Callable[[], bool], fixed: F64 | None = None) -> None:
        """Windows, until something holds; `fixed` is what links carry whatever the routes."""
        ports = {
            host: 0.9 * (1.0 if job in self.heavy else 0.06)
            for job, hosts in self.jobs.items()
            for host in hosts
        }
        for _ in range(60):
            if until():
                return
            share = self.traffic().load * SHARE if fixed is None else fixed
            self.counters.count(share, ports)
        raise AssertionError((self.trial, self.site.log()[-3000:]))

    def begun(self) -> bool:
        """Whether the routes of a trial are in force: its file is written before they are."""
        return "is on trial for 8 windows" in self.site.log()

    def phase(self) -> str:
        return self.trial.phase if self.trial else ""

    def status(self) -> str:
        code, out, err = self.site.ask("status")
        assert code == 0, err
        return out


@contextmanager
def trial_site(folder: Path, cluster: SlurmCluster) -> Iterator[TrialSite]:
    with loop_site(folder, cluster, options=PERFMGR) as site:
        world = TrialSite(site, cluster)
        try:
            yield world
        finally:
            for job in world.jobs:
                cluster.scancel(job)


def test_better_routes_stay_though_opensm_restarts(tmp_path: Path, cluster: SlurmCluster) -> None:
    with trial_site(tmp_path, cluster) as world:
        site = world.site
        world.count(world.begun)
        assert world.trial is not None
        generation = world.trial.generation
        assert "is on trial: 0 of 8 windows counted" in world.status()
        world.count(lambda: bool(world.trial and world.trial.after))
        site.sm.stop()
        site.sm.start()
        site.sm.wait_up()
        world.count(lambda: world.phase() != "running")
        assert world.phase() == "stays", world.trial
        found = world.trial.interval
        assert found is not None and found.high < 0.8
        assert site.bridge.status().generation_in_force == generation
        site.assert_plan_installed()
        row = next(row for row in site.rows() if row.generation == generation)
        assert row.reason == "weights_counted"
        assert row.trial and row.trial["verdict"] == "stays"
        assert row.counted and row.counted_after and row.counted_after["same_jobs"]
        # Not its values: this test may have computed that window's bytes for the routes before.
        code, out, _ = site.ask("history")
        assert code == 0 and "; trial stays: the routes stay: the fullest link's share" in out
        code, out, _ = site.ask("status", "--json")
        assert json.loads(out)["trial"]["verdict"] == "stays"
        assert site.metrics()[("sar_agent_trials_total", "stays")] == 1


def test_worse_routes_go_back_though_the_agent_is_killed(
    tmp_path: Path, cluster: SlurmCluster
) -> None:
    with trial_site(tmp_path, cluster) as world:
        site = world.site
        before = site.plan()
        world.count(world.begun, world.first)
        assert world.trial is not None
        tried = world.trial.generation
        assert not np.array_equal(site.plan().forwarding, before.forwarding)
        worse = world.first.copy()
        worse[int(np.argmax(worse))] *= 1.5
        world.count(lambda: bool(world.trial and world.trial.after), worse)
        daemon = site.daemons[-1]
        daemon.kill()
        daemon.wait()
        site.start()
        world.count(lambda: world.phase() not in ("running", "going_back"), worse)
        assert world.phase() == "went_back", world.trial
        site.wait_installed(tried)
        site.assert_plan_installed()
        assert np.array_equal(site.plan().forwarding, before.forwarding)
        rows = site.rows()
        back = next(row for row in rows if row.reason == "trial_went_back")
        assert back.result == "installed" and back.generation > tried
        assert back.transition, "the way back was proved"
        assert "counts did not get better" in back.why
        trial = next(row for row in rows if row.generation == tried).trial
        assert trial and trial["verdict"] == "went_back" and trial["high"] >= 1


def test_a_cable_dies_in_the_middle(tmp_path: Path, cluster: SlurmCluster) -> None:
    with trial_site(tmp_path, cluster) as world:
        site = world.site
        world.count(world.begun, world.first)
        assert world.trial is not None
        site.fabric.unlink("S1-2", 5)
        world.count(lambda: world.phase() != "running", world.first)
        assert world.phase() == "undecided", world.trial
        assert "so it has no verdict" in world.trial.why
        assert site.bridge.status().engine_in_force == "sar"
