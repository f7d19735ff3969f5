"""Routing keys where they end: in the switches of a simulated fabric, in the tasks of a job."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sar_agent.demand.patterns import rank_phases
from sar_agent.fabric.cabling import MAX_LID
from sar_agent.fabric.ibsim_net import net_ids
from sar_agent.fabric.lmc import lmc_plan
from sar_agent.fabric.spec import load_fabric
from sar_agent.services.keys import client as key
from sar_lab.live.generated import ibsim_for
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import free_port, wait_until
from tests.worlds.live import readback
from tests.worlds.live.built import built
from tests.worlds.live.loop import LoopSite, loop_site
from tests.worlds.live.site import ROOT
from tests.worlds.live.spank import SpankCluster, spank_cluster

pytestmark = pytest.mark.live
FULL = "xgft:2;4,4;1,4"
"""Hosts n001 … n016, as many ways up as hosts at each leaf."""
STENCIL = "stencil3d:4x2x2"


@pytest.fixture(scope="module")
def cluster() -> Iterator[SpankCluster]:
    with spank_cluster() as cluster:
        cluster.arguments()
        yield cluster


@pytest.fixture
def site(
    tmp_path: Path, cluster: SpankCluster, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LoopSite]:
    """An agent that has installed, and that nodes and applications can speak with."""
    with loop_site(tmp_path, cluster, FULL, options={"lmc": "3"}) as made:
        made.settings["agent"] |= {"interval_seconds": 1000, "debounce_seconds": 0}
        tcp = f"127.0.0.1:{free_port()}"
        munge = {"munge_socket": str(cluster.munge_socket)}
        made.settings["events"] = munge | {"tcp_address": tcp}
        monkeypatch.setenv("SAR_MUNGE_SOCKET", str(cluster.munge_socket))
        monkeypatch.setenv("SAR_AGENT", tcp)
        cluster.arguments(agent=made.sm.run_dir / "events.sock", key_timeout=8000, debug=1)
        made.start()
        made.wait_installed()
        yield made
    cluster.arguments()
    cluster.run("scancel", "--user=root")
    assert wait_until(lambda: not cluster.squeue("-h"), 30)


def leases(site: LoopSite) -> list[dict[str, Any]]:
    path = site.state_dir / "leases.json"
    return json.loads(path.read_text()) if path.exists() else []


def hops(site: LoopSite, source: str, target: str, offset: int) -> set[tuple[str, int]]:
    """(switch, port) of each cable between switches on the way to the target's LID at `offset`."""
    fabric, lids = load_fabric(FULL), readback.lids(site.sm.folder / "cache")
    ends = [
        lids[int(fabric.terminal_guid[fabric.hosts[host][0]])].start for host in (source, target)
    ]
    run = site.fabric.run("ibtracert", str(ends[0]), str(ends[1] + offset), host="n002")
    assert run.returncode == 0, run.stderr + run.stdout
    steps = re.findall(r"^\[(\d+)\] -> (\S+) port \{(0x[0-9a-f]+)\}", run.stdout, re.MULTILINE)
    assert len(steps) in (2, 4), run.stdout
    pairs = list(itertools.pairwise(steps))[:-1]  # the last one ends at the host
    return {(here[2], int(there[0])) for here, there in pairs}


def test_a_stencil_has_links_to_itself_and_its_tasks_know_the_offset(
    site: LoopSite, cluster: SpankCluster
) -> None:
    lids = readback.lids(site.sm.folder / "cache")
    assert {len(one) for one in lids.values()} == {1, 8}
    first = site.bridge.status().generation_in_force
    job = cluster.salloc("n[001-016]")
    site.wait_installed(first)
    before = readback.installed(site.fabric)
    seen = cluster.tasks_see(f"--jobid={job}", "-N16", "-n16", f"--sar-traffic={STENCIL}")
    assert seen.get("UCX_IB_LID_PATH_BITS") == "2", cluster.log()[-3000:] + site.log()
    [lease] = leases(site)
    assert (lease["job"], lease["offset"], lease["own"]) == (job, 2, 1)

    after = readback.installed(site.fabric)
    base = {lid - lid % 8 for one in lids.values() if len(one) == 8 for lid in one}
    changed = {lid for (switch, lid), port in after.items() if before[switch, lid] != port}
    assert after.keys() == before.keys() and changed
    assert changed <= {one + 2 for one in base}, "one offset, and nothing else"

    hosts = [f"n{n:03d}" for n in range(1, 17)]
    phases = rank_phases(STENCIL, 16)
    assert len(phases) == 6
    crossing = 0
    for phase in phases:
        used: set[tuple[str, int]] = set()
        for a, b in zip(phase.source.tolist(), phase.destination.tolist(), strict=True):
            links = hops(site, hosts[a], hosts[b], 2)
            assert not used & links, (phase.name, hosts[a], hosts[b])
            used |= links
        crossing += bool(used)
    assert crossing == 2, "y and z stay in a leaf"
    assert wait_until(lambda: site.metrics()["sar_agent_key_leases",] == 1, 20)
    assert site.metrics()["sar_agent_key_flows_max", "all"] == 1

    cluster.scancel(job)
    assert wait_until(lambda: leases(site) == [], 30), site.log()
    assert wait_until(lambda: site.metrics()["sar_agent_key_offsets_free",] == 6, 20)


def client(*words: str, **env: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", "from sar_agent.cli import main; main()", "key", *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | env,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout, done.stderr


def test_an_application_asks_from_python_from_c_and_by_command(
    site: LoopSite, cluster: SpankCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    job = cluster.salloc("n[001-016]")
    with key.phase("halo", pattern="shift:5", job=job) as mine:
        assert (mine.offset, mine.own, mine.sentence) == (2, 1, "")
        assert [one["phase"] for one in key.keys(job=job)] == ["halo"]
        program = built("libs/key", "key")

        def speak(*words: str) -> str:
            env = os.environ | {"SLURM_JOB_ID": job}
            done = subprocess.run([program, *words], env=env, capture_output=True, text=True)
            assert done.returncode == 0 and done.stderr == "", done.stderr
            return done.stdout

        def answers(answer: str, *words: str) -> bool:
            """A busy agent closes connections that send no line for half a second."""
            return wait_until(lambda: speak(*words).startswith(answer), 10)

        assert answers("1 3 1 ", "fft", "butterfly")
        assert answers("1 3 1 ", "fft", "butterfly"), "again is a longer lease"
        assert answers("1 4 1 ", "mine", "0", "5", "5", "9")
        assert answers("-1 0 0 0 rank 99 is not in the job", "mine2", "0", "99")
        assert speak("--done", "fft") == ""
    assert [one["phase"] for one in key.keys(job=job)] == ["mine"]

    pairs = tmp_path / "pairs"
    pairs.write_text("[a]\n0 4\n4 0\n[b]\n0 8\n")
    code, out, err = client("request", "--job", job, "--phase", "b", "--file", str(pairs), "--json")
    assert (code, err) == (0, ""), err
    assert json.loads(out)["offset"] == 2
    code, out, err = client("request", "--job", job, "--phase", "c", "--file", str(pairs))
    assert code == 2 and "no phase 'c'; it has 'a', 'b'" in err
    code, out, err = client("list", "--job", job)
    assert code == 0 and out.startswith("b: LID offset 2, at most 1 flow per link")
    assert client("done", "--job", job, "--json")[1] == '{"phases": ["b", "mine"]}\n'
    assert leases(site) == [] or wait_until(lambda: leases(site) == [], 10)


def test_opensm_and_agent_restart_and_the_key_stays(site: LoopSite, cluster: SpankCluster) -> None:
    job = cluster.salloc("n[001-016]")
    assert key.request("x", pattern="shift:6", job=job).offset == 2
    way = hops(site, "n001", "n007", 2)
    site.daemons[0].kill()
    site.daemons[0].wait()
    assert key.request("x", pattern="shift:6", job=job).sentence.startswith("the agent at 127")
    site.start()
    assert wait_until(lambda: key.request("x", pattern="shift:6", job=job).in_force, 60)
    assert hops(site, "n001", "n007", 2) == way
    site.sm.stop()
    site.sm.start().wait_up()
    asked = time.time()
    assert wait_until(lambda: key.request("y", pattern="shift:2", job=job, wait=20).in_force, 60)
    assert time.time() > asked
    assert hops(site, "n001", "n007", 2) == way
    assert {one["phase"] for one in leases(site)} == {"x", "y"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("spec", "fits"), [("xgft:2;2,191;1,1", True), ("xgft:2;3,128;1,1", False)]
)
def test_opensm_finds_the_lids_that_the_plan_says_and_no_more(spec: str, fits: bool) -> None:
    """382 ports with 128 LIDs each, and 192 switches, fill a subnet to the last block."""
    fabric = load_fabric(spec)
    plan = lmc_plan(fabric, 7)
    assert plan.fits == fits
    host = net_ids(fabric)[1][0]
    with (
        ibsim_for(fabric) as ibsim,
        OpenSM(ibsim, host=host, routing_engine="minhop", options={"lmc": "7"}) as sm,
    ):
        if not fits:
            sm.wait_log("OPENSM RAN OUT OF LIDS", 120)
            return
        sm.wait_up(240)
        lids = sm.lids()
        assert len(lids) == fabric.terminals + fabric.switches
        assert sum(map(len, lids.values())) == plan.lids
        assert max(one[-1] for one in lids.values()) <= MAX_LID
