"""Rail-optimised pods: port k of a host sends to port k of the others. HCAs chosen by name or port,
where a host has several: `fabric.job_hcas` and `--hca`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_agent.agent.decide import Reason
from sar_agent.agent.history import History
from sar_agent.agent.outcome import Result
from sar_agent.demand.collectives import messages_of
from sar_agent.demand.endpoints import mix_of_records, multi_switch_mix, parts_of, rail_note
from sar_agent.demand.rails import rails_of
from sar_agent.demand.rates import declared_flows
from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.opensm_file import decode_opensm_fabric
from sar_agent.fabric.spec import parse_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.model import make_job
from sar_agent.jobs.record import JobRecord
from sar_agent.quality.measures import measure
from sar_agent.routing import Options, load_engine
from sar_lab.assess.site_data import read_site_data
from tests.worlds.agent_world import World
from tests.worlds.command_line import sar_agent
from tests.worlds.fabric_texts import SMALL, ibnetdiscover_text
from tests.worlds.fake_opensm import job
from tests.worlds.opensm_files import image_of_text


def pod(hosts: int = 8, rails: int = 4, *, mixed: int = 0, missing: int = -1) -> Fabric:
    """Two pods, each of `hosts` / 2 hosts and a leaf switch for each rail; one cable from each leaf
    to the one spine. `mixed` hosts have all their ports on the leaf of rail 0; host `missing` lacks
    its first port."""
    builder = FabricBuilder("pod")
    for s in range(2 * rails):
        builder.add_switch(0x5000 + s, f"leaf{s}", 64)
    spine = builder.add_switch(0x6000, "spine", 64)
    for h in range(hosts):
        pod_of = 2 * h // hosts * rails
        for k in range(rails):
            if (h, k) != (missing, 0):
                leaf = pod_of + (0 if h < mixed else k)
                guid = 0xA000 + 16 * h + k
                builder.add_terminal(
                    guid, f"n{h} mlx5_{k}", f"n{h}", leaf, 1 + h * rails + k, node_guid=guid
                )
    for s in range(2 * rails):
        builder.add_link(s, 60, spine, 1 + s)
    return builder.build()


def whole(fabric: Fabric) -> JobMix:
    return JobMix.of([make_job("7", range(fabric.terminals))])


def load(fabric: Fabric, mix: JobMix) -> float:
    routes = load_engine("minhop").route(fabric, mix, Options())
    return measure(fabric, mix, routes).load_max


def test_a_rail_optimised_pod_is_recognised_and_its_load_is_that_of_rails() -> None:
    fabric = pod()
    rails = rails_of(fabric)
    assert rails is not None and rails.recognised
    assert rails.note().startswith(
        "The 4 ports of a host end on leaf switches of their own rails, "
    )
    mix = multi_switch_mix(fabric, whole(fabric).jobs)
    assert [(job.id, job.rail, len(job.terminals)) for job in mix.jobs] == [
        ("7", k, 8) for k in range(4)
    ]
    assert mix.words() == "1 job; on 4 rails 4 parts"
    assert [len(job.terminals) for job in mix.whole_jobs] == [32]
    assert multi_switch_mix(fabric, mix.jobs) == mix, "parts stay what they are"
    # By hand: 4 of 8 hosts of a rail are behind each uplink and send 4/7 of their traffic over it;
    # of all 32 ports, 4 are behind it and send 28/31.
    assert load(fabric, mix) == pytest.approx(4 * 4 / 7)
    assert load(fabric, whole(fabric)) == pytest.approx(4 * 28 / 31)
    assert rails_of(replace(fabric, traffic="alltoall")) is None


def test_a_host_without_its_first_port_has_the_others_on_their_rails() -> None:
    fabric = pod(missing=2)
    rails = rails_of(fabric)
    assert rails is not None and rails.incomplete == {"n2"}
    said = ". Not on all rails, but on those that they have: 1 host (n2)"
    assert rail_note(fabric, whole(fabric)).endswith(said)
    assert said not in rail_note(fabric, JobMix(()))
    for t in range(fabric.terminals):
        assert rails.rail[t] == fabric.terminal_switch[t] % 4


def test_hosts_with_all_ports_on_one_switch_are_no_rails() -> None:
    assert rails_of(pod(mixed=4)) is None
    assert rails_of(pod(mixed=8)) is None
    chosen = replace(pod(mixed=8), traffic="rail")
    forced = rails_of(chosen)
    assert forced is not None and not forced.recognised and not forced.note()
    assert len({job.rail for part in whole(chosen).jobs for job in parts_of(chosen, part)}) == 4
    with pytest.raises(InputError, match="traffic: 'rails' is neither rail nor alltoall"):
        HostMapper(traffic="rails")


def test_a_history_has_rails_at_every_moment(tmp_path: Path) -> None:
    fabric = pod()
    file = tmp_path / "history.csv"
    file.write_text("job,start,end,nodelist\n7,1767607200,1767610800,n[0-7]\n")
    given = read_site_data(fabric, None, file, None, None)
    assert len(given.mix.jobs) == 4
    assert given.placed is not None
    assert len(given.placed.mix_of(np.array([0])).jobs) == 4


def test_measure_and_assess_say_it(tmp_path: Path) -> None:
    (tmp_path / "fabric").write_text(ibnetdiscover_text(pod()))
    (tmp_path / "queue").write_text("7|RUNNING|n[0-7]|b|u|a|8|1795221989|\n")
    same = ("--fabric", tmp_path / "fabric", "--jobs", tmp_path / "queue")
    done = sar_agent("route", *same, "--engine", "minhop", "--out", tmp_path / "routes")
    assert done.returncode == 0, done.stderr
    command = ("measure", *same, "--routes", tmp_path / "routes")
    rail, plain = (sar_agent(*command, *more) for more in ((), ("--traffic", "alltoall")))
    assert plain.stdout.startswith("1 multi-switch job on"), plain.stderr
    assert "rail" not in plain.stderr
    assert "and each rail of a job is a part of its own (--traffic alltoall" in rail.stderr
    assert rail.stdout.startswith("1 multi-switch job; on 4 rails 4 parts on"), rail.stderr
    assert "max 2.29 " in rail.stdout
    assert rail.stdout == sar_agent(*command, "--traffic", "rail").stdout
    quick = ("--no-simulate", "--engine", "minhop", "--engine", "sar-plus")
    said = sar_agent("assess", *same, *quick, "--out", tmp_path / "o").stdout
    assert "\nThe 4 ports of a host end on leaf switches of their own rails, so each is" in said
    said = sar_agent("assess", *same, *quick, "--out", tmp_path / "o", "--traffic", "alltoall")
    assert "rails" not in said.stdout


def test_declared_traffic_runs_on_each_rail(caplog: pytest.LogCaptureFixture) -> None:
    """Among the ranks of that rail, hosts in Slurm's order; where it does not fit the ports of a
    rail, that is said, and the undeclared traffic is expected."""
    fabric = pod(missing=2)
    mix = multi_switch_mix(fabric, [make_job("7", range(fabric.terminals), "stencil2d:2x4")])
    assert [len(job.terminals) for job in mix.jobs] == [8, 8, 8, 7]
    assert {job.rail for job in mix.jobs[:3]} == {1, 2, 3}
    flows = [declared_flows(job) for job in mix.jobs]
    assert [each is not None for each in flows] == [True, True, True, False]
    assert [each.getMessage() for each in caplog.records] == [
        "job 7 declares stencil2d:2x4, on a rail, which does not fit: a grid of 2x4 needs 8 ranks, "
        "the job has 7; it counts as a job that declares nothing"
    ]
    messages = messages_of(fabric, mix, "ring")
    for j, part in enumerate(mix.jobs):
        some = slice(*messages.phase[messages.job[[j, j + 1]]])
        ends = [fabric.terminal_description[t] for t in messages.destination[some]]
        assert {end.split()[1] for end in ends} == {f"mlx5_{part.rail}"}
        assert len(np.diff(messages.job)) == 4
    ring = messages.source[messages.phase[messages.job[3]] :]
    assert [fabric.terminal_host[t] for t in ring] == ["n0", "n1", "n3", "n4", "n5", "n6", "n7"]


def test_an_agent_of_yesterday_planned_for_whole_jobs(tmp_path: Path) -> None:
    """Its state is read, and the jobs are planned for by rails, once."""
    world = World(tmp_path, of=pod())
    world.source.records = (job("7", *(f"n{h}" for h in range(8))),)
    world.restart(traffic="alltoall")
    assert world.once().result is Result.INSTALLED
    file = tmp_path / "state/state.json"
    state = json.loads(file.read_text())
    assert state.pop("by_rail") is False
    file.write_text(json.dumps(state))  # as it was written then
    world.restart(traffic="alltoall")
    assert world.once().reason is None
    world.restart()
    report = world.once()
    assert (report.result, report.reason) == (Result.INSTALLED, Reason.JOBS)
    assert report.sentence.startswith("jobs are planned for by rails from now on; ")
    assert "1 job; on 4 rails 4 parts" in report.sentence
    assert world.value("sar_agent_multi_switch_jobs") == 1
    world.restart()
    assert world.once().reason is None
    assert [row.jobs for row in History(tmp_path / "state").last(9)] == [1, 1]


EXAMPLE = Path(__file__).parents[2] / "docs/examples/cluster.ibnetdiscover"
ROUTES = ("--routes", EXAMPLE.parent / "opensm-lfts.dump")
TWO_RAILS = SMALL.replace("MT4129 ConnectX7   Mellanox Technologies", "n002 mlx5_2")
"""n001 has mlx5_2 and mlx5_10 on leaf 1, n002 two ports of mlx5_2 on leaves 1 and 2."""


def ports(fabric: Fabric, host: str) -> list[tuple[str, int]]:
    """(HCA, port number) of what the host's jobs use."""
    return [
        (fabric.terminal_description[t].split()[-1], int(fabric.terminal_port_number[t]))
        for t in fabric.job_ports[host]
    ]


@pytest.mark.parametrize(
    ("globs", "first", "second"),
    [
        ((), [("mlx5_2", 1), ("mlx5_10", 1)], [("mlx5_2", 1), ("mlx5_2", 2)]),
        (("mlx5_2",), [("mlx5_2", 1)], [("mlx5_2", 1), ("mlx5_2", 2)]),
        (("mlx5_2/2", "mlx5_1?"), [("mlx5_10", 1)], [("mlx5_2", 2)]),
        (("*/1",), [("mlx5_2", 1), ("mlx5_10", 1)], [("mlx5_2", 1)]),
        (("mlx5_[2-10]",), [("mlx5_2", 1), ("mlx5_10", 1)], [("mlx5_2", 1), ("mlx5_2", 2)]),
        (("mlx5_[9,10]/[1-2]",), [("mlx5_10", 1)], [("mlx5_2", 1), ("mlx5_2", 2)]),
        (("mlx5_[0-3]",), [("mlx5_2", 1)], [("mlx5_2", 1), ("mlx5_2", 2)]),
        (("mlx5_10",), [("mlx5_10", 1)], [("mlx5_2", 1), ("mlx5_2", 2)]),  # n002 has none: all
    ],
)
def test_both_readers_choose_the_same_ports(
    globs: tuple[str, ...], first: list[tuple[str, int]], second: list[tuple[str, int]]
) -> None:
    mapper = HostMapper(job_hcas=globs)
    for fabric in (
        parse_fabric(TWO_RAILS, "test", mapper),
        decode_opensm_fabric(image_of_text(TWO_RAILS), mapper).fabric,
    ):
        assert (ports(fabric, "n001"), ports(fabric, "n002")) == (first, second)
        assert fabric.digest == parse_fabric(TWO_RAILS, "test").digest, "it is the same fabric"


def test_a_job_has_the_ports_that_were_chosen() -> None:
    record = JobRecord("7", ("n001", "n002"), "RUNNING")
    mapper = HostMapper(job_hcas=("mlx5_2/2", "mlx5_2/1"))
    fabric = parse_fabric(TWO_RAILS, "test", mapper)
    (job,) = mix_of_records(fabric, [record]).mix.jobs
    names = [fabric.terminal_description[t] for t in job.terminals]
    assert sorted(names) == ["n001 mlx5_2", "n002 mlx5_2", "n002 mlx5_2"]
    leaf = parse_fabric(TWO_RAILS, "test", HostMapper(job_hcas=("*/1",)))
    assert mix_of_records(leaf, [record]).mix.jobs == (), "all port 1 are on one leaf switch"


def test_the_option(tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    dump.write_text(TWO_RAILS)
    leaves = {
        hca: {
            host: switch["name"]
            for switch in json.loads(
                sar_agent("topology", "generate", "--fabric", dump, "--hca", hca, "--json").stdout
            )["switches"]
            for host in switch["nodes"]
        }
        for hca in ("*/1", "*/2")
    }
    assert leaves["*/1"]["n002"] == leaves["*/1"]["n001"]
    assert leaves["*/2"]["n002"] != leaves["*/1"]["n002"]
    done = sar_agent("topology", "generate", "--fabric", dump, "--hca", "hfi1_*")
    assert done.returncode == 2
    assert "--hca 'hfi1_*': no HCA fits; there are mlx5_2" in done.stderr


def test_hosts_of_a_generated_fabric_have_one_hca() -> None:
    done = sar_agent("topology", "generate", "--fabric", "xgft:2;4,4;1,2", "--hca", "mlx5_0")
    assert done.returncode == 2 and "--hca is for dumps" in done.stderr


def test_offline_commands_find_hosts_as_the_agent_does(tmp_path: Path) -> None:
    """Node descriptions that say `ib-n001.site.org`, where Slurm says `n001`."""
    text = EXAMPLE.read_text().replace('"n0', '"ib-n0').replace(' HCA-1"', '.site.org HCA-1"')
    dump, jobs = tmp_path / "dump", EXAMPLE.parent / "squeue.txt"
    dump.write_text(text)
    both = ("--fabric", dump, "--jobs", jobs)
    assert "hosts of jobs are not in the fabric" in sar_agent("measure", *both, *ROUTES).stderr
    plain = sar_agent("measure", "--fabric", EXAMPLE, "--jobs", jobs, *ROUTES).stdout
    pattern = r"ib-(?P<host>[^\s]+)(?: (?P<hca>.*))?"
    config = tmp_path / "agent.toml"
    config.write_text(f"[fabric]\nhost_pattern = '{pattern}'\n")
    for chosen in (("--host-pattern", pattern), ("--config", config)):
        done = sar_agent("measure", *both, *ROUTES, *chosen)
        assert (done.returncode, done.stdout) == (0, plain), done.stderr
    done = sar_agent("measure", *both, *ROUTES, "--host-pattern", "(")
    assert done.returncode == 2 and done.stderr.startswith("sar-agent: host_pattern: ")
    done = sar_agent("measure", *both, *ROUTES, "--host-pattern", pattern, "--long-names")
    assert done.returncode == 0 and "hosts of jobs are not in the fabric" not in done.stderr
    known = sar_agent("topology", "generate", "--fabric", dump, "--host-pattern", pattern,
                      "--long-names").stdout  # fmt: skip
    assert "n001.site.org" in known
    stored = sar_agent(
        "topology", "generate", "--fabric", EXAMPLE, "--storage-hosts", "n00*"
    ).stdout
    assert "n[019-024]" in stored and "n001" not in stored and "n[001" not in stored
