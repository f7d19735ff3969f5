"""`sar-agent place`: free nodes of sinfo, proposals, spread and pending jobs."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from sar_agent.demand.endpoints import multi_switch_mix
from sar_agent.errors import InputError
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.spec import load_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.jobs.record import JobRecord
from sar_agent.jobs.synthetic import jobs_of_spec
from sar_agent.quality.channel_traffic import traffic_of
from sar_agent.reports.placement import TREE_RULE, Placer
from sar_agent.reports.site_dumps import SiteDumps
from sar_agent.reports.spread import planned_jobs, spread_jobs
from sar_agent.routing import Options, load_engine
from sar_agent.slurm.job_files import read_jobs_file
from sar_agent.slurm.sinfo import parse_sinfo
from tests.worlds.command_line import sar_agent

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
SITE = ["--fabric", str(EXAMPLES / "cluster.ibnetdiscover"), "--jobs", str(EXAMPLES / "queue.txt")]
FREE, PLANNED = {"n007", "n008", "n009", "n013"}, {"n007", "n013"}
FORMS = {
    "ours": "n[001-006]|allocated|batch*\nn[007,013]|planned|batch*\nn008|idle|batch*\n"
    "n009|idle~|batch*\nn014|idle*|batch*\nn015|draining|batch*\nn016|mixed-|batch*\n",
    "sinfo": "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
    "batch*       up   infinite      2   plnd n[007,013]\n"
    "batch*       up   infinite      9  alloc n[001-006,010-012]\n"
    "batch*       up   infinite      2   idle n[008-009]\n",
    "sinfo -N -l": "Thu Nov 26 06:04:15 2026\n"
    "NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON\n"
    "n001           1    batch*   allocated 4       4:1:1   1000        0      1   (null) none\n"
    "n007           1    batch*     planned 4       4:1:1   1000        0      1   (null) none\n"
    "n008           1    batch*        idle 4       4:1:1   1000        0      1   (null) none\n"
    "n009           1    batch*        idle 4       4:1:1   1000        0      1   (null) none\n"
    "n013           1    batch*       idle- 4       4:1:1   1000        0      1   (null) none\n"
    "n016           1    batch*     drained 4       4:1:1   1000        0      1   (null) x\n",
    "json 22.05": json.dumps(
        {
            "nodes": [
                {"name": n, "state": state, "state_flags": flags, "partitions": ["batch"]}
                for n, state, flags in (
                    ("n001", "allocated", []), ("n007", "idle", ["PLANNED"]), ("n008", "idle", []),
                    ("n009", "idle", []), ("n013", "idle", ["PLANNED"]),
                    ("n016", "idle", ["DRAIN"]),
                )
            ]
        }
    ),
    "json 23.11": json.dumps(
        {
            "sinfo": [
                {"node": {"state": s}, "nodes": {"nodes": n}, "partition": {"name": "batch"}}
                for s, n in (
                    (["ALLOCATED"], ["n001"]), (["IDLE", "PLANNED"], ["n007", "n013"]),
                    (["IDLE"], ["n008", "n009"]), (["IDLE", "NOT_RESPONDING"], ["n014"]),
                )
            ]
        }
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_free_nodes_of_every_form(form: str) -> None:
    found = parse_sinfo(FORMS[form], None)
    assert (found.free, found.planned, found.left_out) == (FREE, PLANNED, ())
    assert "n001" in found.allocated and not found.allocated & FREE
    assert parse_sinfo(FORMS[form], None, "batch").free == FREE
    with pytest.raises(InputError, match="no partition is called 'gpu'; there are batch"):
        parse_sinfo(FORMS[form], None, "gpu")


def test_a_bad_line_of_sinfo_is_passed_over() -> None:
    found = parse_sinfo(FORMS["ours"] + "nonsense\nn[1-|idle|batch*\n", None)
    assert found.free == FREE
    assert found.left_out == ("line 8: 'nonsense'", "line 9: 'n[1-|idle|batch*'")


@pytest.mark.parametrize("text", ["sinfo: error\n", "{}", '{"nodes": 3}', "{", "1|2|3\n"])
def test_other_texts_are_no_sinfo(text: str) -> None:
    with pytest.raises(InputError, match="not the output of sinfo"):
        parse_sinfo(text, Path("nodes.txt"))


def test_planned_nodes_of_squeue(tmp_path: Path) -> None:
    (tmp_path / "queue").write_text(
        "JOBID|STATE|NODELIST|SCHEDNODES|START_TIME|\n"
        "3|PENDING||n[001-008,013-014]|2026-11-26T06:08:32|\n"
        "4|PENDING||(null)|N/A|\n"
        "1|RUNNING|n[001-006]|(null)|2026-11-26T06:03:29|\n"
    )
    pending = {"job_id": 3, "job_state": "PENDING", "nodes": "", "scheduled_nodes": "n[001-002]"}
    (tmp_path / "json").write_text(json.dumps({"jobs": [pending | {"start_time": 1795673312}]}))
    running = read_jobs_file(tmp_path / "queue")
    planned = [read_jobs_file(tmp_path / name, {"PENDING"}) for name in ("queue", "json")]
    assert [job.id for job in running] == ["1"]
    assert [[(job.id, len(job.hosts)) for job in jobs] for jobs in planned] == [
        [("3", 10)],
        [("3", 2)],
    ]
    assert planned[1][0].start == 1795673312


def placed(spec: str, engine: str, seed: int, ended: int = 0) -> Placer:
    """Beside the jobs of a queue, the first of which have ended."""
    fabric = load_fabric(spec)
    jobs = jobs_of_spec(f"mix:{seed},placed=tree", fabric)[ended:]
    mix = multi_switch_mix(fabric, jobs)
    busy = {fabric.terminal_host[t] for job in jobs for t in job.terminals}
    routes = load_engine(engine).route(fabric, mix, Options())
    return Placer(SiteDumps(fabric, (), mix, routes), set(fabric.hosts) - busy)


def test_costs_are_those_of_the_measures() -> None:
    """The search adds loads; the sum must be what `traffic_of` says of all jobs together."""
    placer = placed("xgft:3;6,6,6;1,3,6", "ftree", 2)
    hosts = [host for leaf in placer.free.values() for host in leaf][:12]
    job = make_job("new", (t for host in hosts for t in placer.fabric.job_ports[host]))
    mix = JobMix((*placer.mix.jobs, job))
    after = np.maximum(1.0, traffic_of(placer.fabric, mix, placer.routes).job_load)
    before = np.maximum(1.0, traffic_of(placer.fabric, placer.mix, placer.routes).job_load)
    sizes = np.array([len(each.terminals) for each in mix.jobs])
    idle = float((sizes[:-1] * (1 / before - 1 / after[:-1])).sum())
    found = placer.candidate(hosts)
    assert found.at_once == pytest.approx(after[-1]) and found.others_cost == pytest.approx(idle)
    assert found.own_cost == pytest.approx(12 * (1 - 1 / after[-1]))
    assert placer.cost(hosts) == pytest.approx(found.cost)
    assert {each.job for each in found.slowed} == {
        placer.mix.jobs[j].id for j in np.flatnonzero(after[:-1] > before + 0.005)
    }


@pytest.mark.parametrize("seed, ended", [(0, 1), (0, 2), (1, 3), (4, 2), (4, 3)])
def test_the_search_finds_what_all_placements_have(seed: int, ended: int) -> None:
    """Of all placements of six nodes, none costs less than what is proposed."""
    placer = placed("xgft:2;5,8;1,2", "ftree", seed, ended)
    free = [host for leaf in placer.free.values() for host in leaf]
    best = min(placer.cost(hosts) for hosts in itertools.combinations(free, 6))
    found = placer.candidates(6)
    assert found[0].rule == TREE_RULE and found[0].cost > best
    assert found[1].cost == pytest.approx(best)
    assert all(each < found[0] for each in found[1:]) and found[1:] == sorted(found[1:])


@pytest.mark.parametrize("engine", ["ftree", "sar-plus"])
def test_proposals_are_free_nodes_each_once_and_never_worse(engine: str) -> None:
    for seed in range(3):
        placer = placed("xgft:3;6,6,6;1,3,6", engine, seed)
        free = {host for leaf in placer.free.values() for host in leaf}
        found = placer.candidates(12)
        assert all(len(set(each.hosts)) == 12 and set(each.hosts) <= free for each in found)
        assert all(each.cost <= found[0].cost for each in found)
        assert found == placer.candidates(12)
        with pytest.raises(ValueError, match="more than are free"):
            placer.candidates(len(free) + 1)


def test_spread_and_pending_jobs() -> None:
    fabric = load_fabric("xgft:2;4,4;1,2")  # n001 to n004 on the first leaf switch, and so on
    routes = load_engine("ftree").route(fabric, JobMix(()), Options())
    records = [
        JobRecord("1", ("n001", "n005", "n009"), "RUNNING"),
        JobRecord("2", ("n002", "n006"), "RUNNING"),
        JobRecord("3", ("n013", "n014"), "RUNNING"),
    ]
    spread = spread_jobs(fabric, records, ["n003", "n004", "n007"])
    assert [(job.job, job.switches, job.fewest) for job in spread] == [("1", 3, 1), ("2", 2, 1)]
    jobs = [
        make_job(record.id, (t for host in record.hosts for t in fabric.job_ports[host]))
        for record in records
    ]
    dumps = SiteDumps(fabric, tuple(records), multi_switch_mix(fabric, jobs), routes)
    later = [
        JobRecord("8", ("n003", "n007"), "PENDING", start=200.0),
        JobRecord("7", ("n002", "n003"), "PENDING", start=100.0),
        JobRecord("9", ("n001", "n006", "n010"), "PENDING"),
    ]
    found = planned_jobs(dumps.traffic, later)
    assert [(job.job, job.switches) for job in found] == [("7", 1), ("8", 2), ("9", 3)]
    assert not found[0].shared and not found[2].shared  # 1 and 2 must end before 9 starts
    beside = traffic_of(fabric, dumps.mix, routes).load
    alone = traffic_of(fabric, JobMix((make_job("8", map(int, (2, 6))),)), routes).load
    assert len(found[1].shared) == ((beside > 0) & (alone > 0)).sum()
    assert found[1].at_once == pytest.approx(max(1.0, (beside + alone)[alone > 0].max()))


def test_all_rails_of_a_job_count(tmp_path: Path) -> None:
    """`place`, `explain` and the measures say the same number of leaf switches."""
    builder = FabricBuilder("two rails")
    for s in range(6):  # three pods, a leaf switch for each rail
        builder.add_switch(0x5000 + s, f"leaf{s}", 64)
    spines = [builder.add_switch(0x6000 + s, f"spine{s}", 64) for s in range(2)]
    for h, k in itertools.product(range(12), range(2)):
        guid = 0xA000 + 16 * h
        leaf = 2 * (h // 4) + k
        builder.add_terminal(
            guid + k, f"n{h} mlx5_{k}", f"n{h}", leaf, 1 + h % 4, node_guid=guid, port_number=k + 1
        )
    for s, spine in itertools.product(range(6), range(2)):
        builder.add_link(s, 60 + spine, spines[spine], 1 + s)
    fabric = builder.build()
    routes = load_engine("minhop").route(fabric, JobMix(()), Options())
    record = JobRecord("1", ("n0", "n4"), "RUNNING")
    job = make_job("1", (t for host in record.hosts for t in fabric.job_ports[host]))
    dumps = SiteDumps(fabric, (record,), JobMix((job,)), routes)
    assert dumps.traffic.job_switches.tolist() == [4]
    placer = Placer(dumps, {f"n{h}" for h in range(12)} - set(record.hosts))
    one, three = placer.candidate(["n1", "n2"]), placer.candidate(["n1", "n5", "n9"])
    assert (one.switches, three.switches) == (2, 6)
    assert "on 2 switches (1 on each of 2 rails); all" in one.words()
    assert "on 6 switches (3 on each of 2 rails); all" in three.words()
    [spread] = spread_jobs(fabric, [record], ["n1"])
    assert "2 nodes on 4 switches (2 on each of 2 rails), 2 would do" in spread.words()
    [later] = planned_jobs(dumps.traffic, [JobRecord("2", ("n1", "n8"), "PENDING")])
    assert "2 nodes on 4 switches (2 on each of 2 rails), all" in later.words(3)


def test_place_on_the_example() -> None:
    nodes = ["--nodes", EXAMPLES / "sinfo.txt"]
    proposed = sar_agent("place", *SITE, *nodes, "-N", "2", "--json")
    assert "2 free nodes are kept for pending jobs and left out" in proposed.stderr
    found = json.loads(proposed.stdout)
    assert found["free"] == 4 and found["candidates"][0]["rule"] == TREE_RULE
    queue = json.loads(sar_agent("place", *SITE, *nodes, "--json").stdout)
    assert [job["job"] for job in queue["planned"]] == ["4716"]
    assert queue["planned"][0]["shared"]


def test_free_nodes_that_the_fabric_takes_for_storage_are_named() -> None:
    nodes = ["--nodes", EXAMPLES / "sinfo.txt", "--storage-hosts", "n00[78]"]
    said = sar_agent("place", *SITE, *nodes, "-N", "2").stderr
    assert "free nodes are no compute hosts of the fabric" in said and "n007" in said


def test_bad_input(tmp_path: Path) -> None:
    def refused(*arguments: str) -> str:
        result = sar_agent("place", *SITE, *arguments)
        assert result.returncode == 2 and not result.stdout
        return result.stderr

    (tmp_path / "other").write_text("gpu[1-4]|idle|batch*\n")
    said = refused("--nodes", str(tmp_path / "other"), "-N", "2")
    assert "no node of sinfo (gpu1, gpu2, gpu3, …) is a host of" in said
    nodes = ["--nodes", str(EXAMPLES / "sinfo.txt")]
    assert "5 nodes are asked for, and 4 are free" in refused(*nodes, "-N", "5")
    assert "write 90s, 90m, 2h or 1d" in refused(*nodes, "--time", "2 weeks", "-N", "2")
