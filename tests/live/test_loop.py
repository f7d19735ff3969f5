"""The loop closes: real Slurm jobs change the routes of a real, stock OpenSM."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.lfts_dump import read_lfts_dump
from sar_agent.install.changes import differences
from sar_agent.routing.routes import NO_ROUTE, Routes
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import wait_until
from sar_lab.live.slurm import SlurmCluster
from tests.worlds.live import readback
from tests.worlds.live.loop import FABRIC, LoopSite, assert_no_credit_loop, loop_site
from tests.worlds.live.scraping import Prometheus
from tests.worlds.live.site import ROOT

pytestmark = pytest.mark.live


@pytest.fixture
def site(tmp_path: Path, slurm: SlurmCluster) -> Iterator[LoopSite]:
    with loop_site(tmp_path, slurm) as made:
        yield made


def reasons(site: LoopSite) -> list[str]:
    return [row.reason for row in site.rows() if row.result == "installed"]


def test_jobs_change_the_routes_and_a_dead_link_is_survived(site: LoopSite) -> None:
    slurm = site.slurm
    jobs = [slurm.salloc(nodes) for nodes in ("n[001,005,009]", "n[002,006,010]", "n[003-004,013]")]
    site.start()
    first = site.wait_installed()
    assert wait_until(lambda: reasons(site) == ["first"], 30), reasons(site)
    site.assert_plan_installed()
    site.assert_paths([("n001", "n009"), ("n006", "n002"), ("n013", "n003")])
    assert site.metrics()["sar_agent_multi_switch_jobs",] == 3
    before = site.plan()
    dump = site.folder / "dump_fts"
    dump.write_text(site.fabric.run("dump_fts", host="n002").stdout)
    fabric = load_fabric(FABRIC)
    read = routes_to_file(fabric, read_lfts_dump(dump, fabric), 1)
    assert differences(before, read) == 0, "our own reader of dump_fts sees the plan, too"

    slurm.scancel(jobs[0])
    slurm.salloc("n[007-008,011-012,014-015]")
    second = site.wait_installed(first.generation_in_force)

    def serves_three() -> bool:
        """An end and a start that the agent sees in two passes are two installs."""
        newest = next(row for row in site.rows() if row.result == "installed")
        return newest.reason == "jobs_changed" and newest.jobs == 3

    assert wait_until(serves_three, 60), site.log()[-3000:]
    site.wait_installed(first.generation_in_force)
    site.assert_plan_installed()
    assert set(reasons(site)[:-1]) == {"jobs_changed"}
    assert not np.array_equal(site.plan().forwarding, before.forwarding)

    generation = site.wait_installed().generation_in_force
    engines = set()

    def followed() -> bool:
        engines.add(site.bridge.status().engine_in_force)
        return any(row.reason == "amended" for row in site.rows())

    site.fabric.unlink("S1-0", 5)
    site.sm.sweep()  # OpenSM may miss a trap that comes while it sweeps for the install before
    assert wait_until(followed, 60, 0.01), (
        [(row.reason, row.result) for row in site.rows()], site.log()[-3000:], site.bridge.status()
    )  # fmt: skip
    assert engines == {"sar"}, "no other engine was ever in force"
    assert "was repaired" in site.sm.log()
    assert second.generation_in_force <= generation
    leaf = site.plan().switch_guids.tolist().index(0x8F10401000000)
    guid = int(site.plan().switch_guids[leaf])
    tables = readback.installed(site.fabric)
    assert not any(port == 5 for (switch, _), port in tables.items() if switch == guid)

    site.slurm.salloc("n[001,005,009]")
    site.wait_installed(generation)
    site.assert_plan_installed()
    assert not (site.plan().forwarding[:, leaf] == 5).any(), "nothing goes over the dead link"

    assert_no_credit_loop(site)


def test_a_crash_an_edit_a_second_agent_and_opensm_restarting(site: LoopSite) -> None:
    slurm = site.slurm
    slurm.salloc("n[001,005]")
    agent = site.start()
    first = site.wait_installed()

    other = site.cli("once")
    assert other.returncode == 1
    assert f"held by process {agent.pid} since" in other.stderr

    agent.kill()
    agent.wait()
    slurm.salloc("n[002,006]")
    site.start()
    second = site.wait_installed(first.generation_in_force)
    site.assert_plan_installed()
    assert wait_until(lambda: reasons(site) == ["jobs_changed", "first"], 30), reasons(site)

    text = slurm.topology_conf.read_text()
    single = text.replace("leaf1 Nodes=n001,n002", "leaf1 Nodes=n001,n005,n002").replace(
        "leaf2 Nodes=n005,", "leaf2 Nodes="
    )
    assert single != text
    slurm.topology_conf.write_text(single)
    third = site.wait_installed(second.generation_in_force)
    assert wait_until(lambda: reasons(site)[0] == "topology_edited", 30), reasons(site)
    slurm.topology_conf.write_text(text)
    fourth = site.wait_installed(third.generation_in_force)

    site.sm.stop()
    assert wait_until(lambda: site.metrics()["sar_agent_sm_reachable",] == 0, 30)
    site.sm.routes_path.unlink()
    site.sm.start().wait_up()
    site.wait_installed(fourth.generation_in_force)
    site.assert_plan_installed()
    assert site.metrics()["sar_agent_sm_reachable",] == 1


def test_the_way_out_changes_no_entry_when_opensm_routes_again(site: LoopSite) -> None:
    site.slurm.salloc("n[001,005,009]")
    assert site.ask("once")[0] == 0
    fabric = load_fabric(FABRIC)

    def tables() -> Routes:
        dump = site.folder / "dump_fts"
        dump.write_text(site.fabric.run("dump_fts", host="n002").stdout)
        return read_lfts_dump(dump, fabric)

    code, out, err = site.ask("leave", "--engine", "ftree")
    assert code == 0, err
    assert out.startswith("the tables of OpenSM's ftree are in force as generation 2, ")
    assert "until `sar-agent resume`. Now stop the agent, take sar out of routing_engine" in out
    left = tables()
    site.ask("once")
    assert site.plan().generation == 2, "held"
    site.sm.stop()
    with OpenSM(site.fabric, host="n001", routing_engine="ftree") as stock:
        stock.wait_up()
        assert "ftree tables configured on all switches" in stock.log()
        now = tables()
    assert np.array_equal(now.egress[:, : fabric.terminals], left.egress[:, : fabric.terminals])
    filled = now.egress == NO_ROUTE  # OpenSM's ftree leaves out ways from spine to spine
    assert np.array_equal(now.egress[~filled], left.egress[~filled])

    code, _, err = site.ask("leave", "--engine", "dfsssp")
    assert code == 2 and "name minhop, updn or ftree" in err


def test_a_reboot_of_the_only_host_changes_no_entry(site: LoopSite) -> None:
    """Power off, power on: switches keep their tables, `/run` is empty."""
    site.slurm.salloc("n[001,005]")
    agent = site.start()
    first = site.wait_installed()
    assert wait_until(lambda: site.state() is not None, 30)
    plan, before = site.plan(), site.fabric.run("dump_fts", host="n002").stdout
    agent.kill()
    agent.wait()
    site.sm.stop()
    for path in site.sm.routes_path.parent.glob("routes.*"):
        path.unlink()

    code, out, _ = site.ask("fetch-state")
    assert (code, out) == (
        0,
        f"OpenSM begins with generation {first.generation_in_force}, which was kept on disk\n",
    )
    assert "which is in" in site.ask("fetch-state")[1]
    site.sm.start().wait_up()
    status = site.bridge.status()
    assert (status.engine_in_force, status.generation_in_force) == ("sar", plan.generation)
    assert site.fabric.run("dump_fts", host="n002").stdout == before
    assert "the same 1 multi-switch job" in "".join(site.ask("once")[1:])


def test_observing_touches_nothing(site: LoopSite) -> None:
    site.slurm.salloc("n[001,005,009]")
    before = readback.installed(site.fabric)
    status = site.bridge.status()
    site.start(mode="observe")
    assert wait_until(
        lambda: site.log() and ("sar_agent_dark_fiber_ratio", "planned") in site.metrics(), 60
    )
    metrics = site.metrics()
    assert metrics["sar_agent_install_mode",] == 0
    assert (
        metrics["sar_agent_effective_efi_max", "in_force"]
        >= metrics["sar_agent_effective_efi_max", "planned"]
    )
    assert metrics["sar_agent_engine_in_force", "dfsssp"] == 1
    site.slurm.salloc("n[002,006]")
    assert wait_until(lambda: site.metrics()["sar_agent_multi_switch_jobs",] == 2, 30)
    after = site.bridge.status()
    assert (after.routings, after.generation_loaded) == (status.routings, 0)
    assert readback.installed(site.fabric) == before
    assert not site.sm.routes_path.exists()
    assert {row.result for row in site.rows()} == {"planned"}


def test_an_opensm_without_the_plugin_survives(tmp_path: Path, slurm: SlurmCluster) -> None:
    slurm.salloc("n[001,005]")
    with loop_site(tmp_path, slurm, plugin=None) as site:
        done = site.cli("once")
        assert done.returncode == 1
        assert "the fabric" in done.stderr and "OpenSM's plugin does not answer" in done.stderr
        assert site.state() is None
        site.sm.sweep()
        site.sm.wait_log("SUBNET UP", after=site.sm.log().index("SUBNET UP") + 9)
        assert site.sm.alive()

        site.settings["opensm"]["lfts_dump"] = str(site.sm.dump_dir / "opensm-lfts.dump")
        assert wait_until((site.sm.dump_dir / "opensm-lfts.dump").exists, 30)
        site.start(mode="observe")
        assert wait_until(lambda: "planned, not installed" in site.log(), 60), site.log()
        assert site.metrics()["sar_agent_effective_efi_max", "in_force"] > 0


def test_every_query_of_dashboard_and_alerts_finds_its_series(site: LoopSite) -> None:
    site.slurm.salloc("n[001,005,009]")
    site.start()
    site.wait_installed()
    board = json.loads((ROOT / "deploy/grafana/sar-agent.json").read_text())
    shown = [one for panel in board["panels"] for one in (panel, *panel.get("panels", ()))]
    panels = [target["expr"] for panel in shown for target in panel.get("targets", ())]
    assert len(panels) > 40
    instance = f"127.0.0.1:{site.port}"
    marks = [one["expr"] for one in board["annotations"]["list"]]
    rules = ROOT / "deploy/prometheus/sar-agent.rules.yml"
    with Prometheus([f"127.0.0.1:{site.port}"], [rules]) as prometheus:
        prometheus.wait_for('sar_agent_engine_in_force{engine="sar"} == 1')
        # A rate needs two scrapes; the last good pass must be in the newest one.
        prometheus.wait_for("sum(rate(sar_agent_stage_seconds_count[1m])) > 0")
        for expression in panels:
            soon = expression.replace("[30d:5m]", "[1m:1s]")  # nobody waits for five minutes
            prometheus.wait_for(soon.replace("$instance", instance))
        for expression in marks:
            prometheus.query(expression.replace("$instance", instance))
        groups = prometheus.get("rules")["groups"]
        alerts = [rule for group in groups for rule in group["rules"]]
        assert len(alerts) == 23
        assert wait_until(
            lambda: all(
                rule["health"] == "ok"
                for group in prometheus.get("rules")["groups"]
                for rule in group["rules"]
            ),
            30,
        )
        assert not prometheus.get("alerts")["alerts"], "a healthy site raises none"
        for rule in alerts:  # every series that an alert compares is there
            for name in set(re.findall(r"\b(?:sar_\w+|up)\b", rule["query"])):
                assert prometheus.wait_for(name), (rule["name"], name)

        site.slurm.run("scancel", "--user=root")
        site.sm.stop()
        prometheus.wait_for('ALERTS{alertname="SarSubnetManagerUnreachable",alertstate="pending"}')


def test_an_administrator_asks_holds_and_rolls_back(site: LoopSite) -> None:
    def done(*words: str) -> str:
        """What the command printed, on either stream."""
        code, out, err = site.ask(*words)
        assert code == 0, (words, err)
        return out + err

    job = site.slurm.salloc("n[001,005,009]")
    done("once")
    first = site.plan()
    site.slurm.salloc("n[002,006,010,013-014]")
    done("once")
    second = site.plan()
    assert not np.array_equal(first.forwarding, second.forwarding)
    assert "the same 2 multi-switch jobs" in done("once")

    status = json.loads(done("status", "--json"))
    assert status["ours"] and status["running"] == ""
    assert status["generations"] == [first.generation, second.generation]
    assert f"generation {second.generation}" in done("status")
    decisions = json.loads(done("history", "--json"))["decisions"]
    assert [one["reason"] for one in decisions] == ["jobs_changed", "first"]
    assert decisions[0]["achieved"] == decisions[0]["predicted"]
    assert "dark fiber" in done("history", "-n", "1")

    said = json.loads(done("explain", job, "--json"))
    assert said["leaves"] == {"S1-0": ["n001"], "S1-1": ["n005"], "S1-2": ["n009"]}
    # What is planned is made from nothing, and may lead elsewhere at the same load.
    for word in ("engine", "load"):
        assert said["in_force"][word] == said["planned"][word], word
    assert '"S1-' in done("explain", job)
    assert said["transition"] and "from one to the other: " in done("explain", job)
    code, _, err = site.ask("explain", "999")
    assert code == 2 and "no job 999 is running" in err

    assert f"the tables of generation {first.generation}" in done("rollback")
    third = site.plan()
    assert third.generation == second.generation + 1
    assert np.array_equal(third.forwarding, first.forwarding)
    site.assert_plan_installed()
    assert site.rows()[0].reason == "rollback" and site.rows()[0].who != "agent"
    done("once")
    assert site.plan().generation == third.generation, "held"
    site.slurm.scancel(job)
    done("once")
    assert site.plan().generation == third.generation, "held: until someone says so"
    assert "no longer held" in done("resume") and "nothing is held" in done("resume")
    done("once")
    assert site.plan().generation == third.generation + 1

    done("rollback", "--to", str(second.generation), "--hold", "60m")
    site.slurm.salloc("n[003,007]")
    assert "held until" in done("once")
    assert np.array_equal(site.plan().forwarding, second.forwarding)
    assert "60 min" in done("status")
    site.fabric.unlink("S1-0", 5)
    assert wait_until(
        lambda: site.bridge.status().amendments > 0 and site.bridge.status().settled, 30
    )
    code, _, err = site.ask("rollback", "--to", str(second.generation))
    assert code == 1 and "do not reach" in err
    assert "held until" in done("once"), "routes that OpenSM has repaired stay held"
    status = site.bridge.status()
    assert status.engine_in_force == "sar" and status.amendments
    assert site.rows()[0].reason == "amended"
