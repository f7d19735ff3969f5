"""The bytes of the fluid simulation are put into ibsim's counters, and come back through PerfMgr,
the plugin and the agent; then one link carries more than the jobs explain."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from sar_agent.fabric import Fabric
from sar_agent.fabric.model import F64
from sar_agent.fabric.spec import load_fabric
from sar_agent.formats.conversion import file_to_routes
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.opensm.plugin_client import PluginRefused
from sar_agent.routing.routes import Routes
from sar_lab.fluid import PATTERNS
from sar_lab.fluid.flow_events import add_carried, advance, progress_of
from sar_lab.fluid.flow_paths import link_rates, routed_links
from sar_lab.live.process import wait_until
from sar_lab.live.prometheus import Prometheus
from sar_lab.live.slurm import SlurmCluster
from tests.worlds.live.counters import PERFMGR, Counters
from tests.worlds.live.loop import FABRIC, LoopSite, loop_site
from tests.worlds.live.site import ROOT

pytestmark = pytest.mark.live

BUSIEST = 0.5
"""Share of its speed that the busiest link carries."""


def simulated(fabric: Fabric, mix: JobMix, routes: Routes) -> tuple[F64, dict[str, float]]:
    """What an all-to-all of all jobs sends by the fluid simulation, from its start until the last
    flow has ended: float64[C], the share of each channel's speed, where the busiest has `BUSIEST`,
    and the same for the port of each host. In steps that windows of 1.9 to 2.1 s do not mix up."""
    flows = PATTERNS["alltoall"](fabric, mix)
    links = routed_links(fabric, routes, flows)
    progress = progress_of(links, flows)
    advance(links, flows, progress, np.inf)
    for f in range(len(flows.size)):
        add_carried(links, progress, np.uint32(f), progress.to_go[f])
    sent = progress.carried / link_rates(fabric)
    assert progress.carried.sum() == pytest.approx(
        float((flows.size * (links.stop - links.path)).sum())
    ), "all bytes have arrived"
    scale = BUSIEST / sent[: fabric.channels].max()
    share = np.rint(sent * scale * 50) / 50
    ports = share[fabric.channels : fabric.channels + fabric.terminals]
    hosts = zip(fabric.terminal_host, ports.tolist(), strict=True)
    return share[: fabric.channels], {host: part for host, part in hosts if part}


def test_counted_as_predicted_then_one_link_more_while_jobs_come_and_go(
    tmp_path: Path, cluster: SlurmCluster
) -> None:
    with loop_site(tmp_path, cluster, options=PERFMGR) as site:
        site.settings["counters"] = {"source": "plugin"}
        fabric = load_fabric(FABRIC)
        counters = Counters(site, fabric)
        jobs: dict[str, list[int]] = {}

        def start(nodes: str, numbers: list[int]) -> str:
            job = str(cluster.salloc(nodes))
            jobs[job] = numbers
            return job

        def load() -> tuple[F64, dict[str, float]]:
            """Simulated shares of channels and hosts."""
            hosts = {
                job: [t for n in ns for t in fabric.hosts[f"n{n:03}"]] for job, ns in jobs.items()
            }
            mix = JobMix.of([make_job(job, terminals) for job, terminals in hosts.items()])
            return simulated(fabric, mix, file_to_routes(fabric, site.plan()))

        def until(
            holds: Callable[[dict[tuple[str, ...], float]], bool], more: Mapping[int, float]
        ) -> None:
            """Windows as predicted, with other shares for the channels in `more`."""
            for _ in range(40):
                share, ports = load()
                for channel, value in more.items():
                    share[channel] = value
                counters.count(share, ports)
                if wait_until(lambda: holds(metrics(site)), 1.9, 0.1):
                    return
            raise AssertionError((metrics(site), site.log()[-2000:]))

        first = start("n[001,005,009]", [1, 5, 9])
        start("n[002,006,010,014]", [2, 6, 10, 14])
        site.start()
        site.wait_installed()
        until(as_predicted, {})

        cluster.scancel(first)
        del jobs[first]
        generation = site.wait_installed().generation_in_force
        last = start("n[003-004,011-012]", [3, 4, 11, 12])
        site.wait_installed(generation)
        until(as_predicted, {})
        sending = float(np.mean([load()[1][f"n{ns[0]:03}"] for ns in jobs.values()]))
        until(lambda m: m.get(("weight",), 0) == pytest.approx(sending, rel=0.2), {})

        now, ports = load()
        quiet = int(np.argmin(np.where(now > 0, now, np.inf)))
        name = fabric.channel_name(quiet)
        until(lambda m: m.get(("hot",)) == 1 and m.get(("rank",), 1) < 0.999, {quiet: 0.9})
        assert wait_until(lambda: f"hot but not predicted: {name} carried" in site.log(), 10)

        def asked() -> bool:
            counters.count(np.where(np.arange(len(now)) == quiet, 0.9, now), ports, quiet)
            wait_until(lambda: metrics(site).get(("hot",)) == 1, 1.9, 0.1)
            code, out, _ = site.ask("counters", "--json")
            found = json.loads(out) if code == 0 else {"hot": [], "jobs": []}
            waited = [job["hottest_link"] for job in found["jobs"] if job["waits_share"] == 1.0]
            return [link["link"] for link in found["hot"]] == [name] and set(waited) == {name}

        assert wait_until(asked, 60, 0.1)
        queries_and_alert(
            site,
            lambda: counters.count(np.where(np.arange(len(now)) == quiet, 0.9, now), ports, quiet),
        )
        code, out, err = site.ask("explain", last)
        assert code == 0, err
        assert "counters: OpenSM's PerfMgr" in out
        assert "predicted load" in out
        rows = [row for row in site.rows() if row.counted]
        assert not rows or set(rows[0].counted or {}) == {"rank", "top", "counted_max", "hot_links"}


def as_predicted(found: Mapping[tuple[str, ...], float]) -> bool:
    """A window in which all bytes are where they were predicted."""
    return (
        found.get(("rank",), 0) == pytest.approx(1.0, abs=1e-12)
        and found.get(("top",)) == 1
        and found.get(("hot",)) == 0
    )


def queries_and_alert(site: LoopSite, count: Callable[[], None]) -> None:
    """A real Prometheus finds the series of the dashboard's row, and the alert on the link."""
    board = json.loads((ROOT / "deploy/grafana/sar-agent.json").read_text())
    (row,) = [one for one in board["panels"] if one["title"] == "Predicted and counted"]
    queries = [target["expr"] for panel in row["panels"] for target in panel["targets"]]
    assert len(queries) > 8
    instance = f"127.0.0.1:{site.port}"
    with Prometheus([instance], [ROOT / "deploy/prometheus/sar-agent.rules.yml"]) as prometheus:
        alert = 'ALERTS{alertname="SarUnexplainedTraffic",alertstate="pending"}'

        def pending() -> bool:
            count()
            return bool(prometheus.query(alert))

        assert wait_until(pending, 120, 0.1), metrics(site)
        for query in queries:
            assert prometheus.query(query.replace("$instance", instance)), query
        names = {one.labels["alertname"] for one in prometheus.query("ALERTS")}
        assert "SarCountersUnusable" not in names


def metrics(site: LoopSite) -> dict[tuple[str, ...], float]:
    """The metrics of this test by short names; those without a series are missing."""
    names = {
        "prediction_rank_correlation": "rank",
        "prediction_top_ratio": "top",
        "unexplained_hot_links": "hot",
        "measured_job_weight_mean": "weight",
    }
    found = site.metrics()
    return {
        (short,): value
        for (name, *_), value in found.items()
        for end, short in names.items()
        if name.endswith(end)
    }


def test_without_perfmgr_nothing_is_counted(tmp_path: Path, cluster: SlurmCluster) -> None:
    with loop_site(tmp_path, cluster) as site:
        site.settings["counters"] = {"source": "plugin"}
        assert site.bridge.status().perfmgr is False
        with pytest.raises(PluginRefused, match=r"PerfMgr is off.*set perfmgr TRUE") as refused:
            site.bridge.counters()
        assert refused.value.code == "perfmgr-off"
        assert not (site.sm.run_dir / "counters.sar").exists()
        code, out, err = site.ask("counters")
        assert (code, out) == (1, "")
        assert "PerfMgr is off" in err
