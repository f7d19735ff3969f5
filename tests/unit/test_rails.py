"""Rail-optimised pods: port k of a host sends to port k of the others. HCAs chosen by name or port,
where a host has several: `fabric.job_hcas` and `--hca`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sar_agent.demand.rails import rails_for
from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.fabric.builder import FabricBuilder
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.opensm_file import decode_opensm_fabric
from sar_agent.fabric.spec import parse_fabric
from sar_agent.jobs import JobMix
from sar_agent.jobs.mapping import mix_of_records
from sar_agent.jobs.model import make_job
from sar_agent.jobs.record import JobRecord
from sar_agent.quality.measures import measure
from sar_agent.routing import Options, load_engine
from sar_lab.assess.site_data import read_site_data
from tests.worlds.command_line import sar_agent
from tests.worlds.fabric_texts import SMALL, ibnetdiscover_text
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
    rails = rails_for(fabric, None)
    assert rails is not None and rails.recognised
    assert rails.note.startswith("The 4 ports of a host end on leaf switches of their own rails, ")
    mix = rails.split(whole(fabric))
    assert [(job.id, len(job.terminals)) for job in mix.jobs] == [
        (f"7 rail {k}", 8) for k in range(4)
    ]
    # By hand: 4 of 8 hosts of a rail are behind each uplink and send 4/7 of their traffic over it;
    # of all 32 ports, 4 are behind it and send 28/31.
    assert load(fabric, mix) == pytest.approx(4 * 4 / 7)
    assert load(fabric, whole(fabric)) == pytest.approx(4 * 28 / 31)
    assert rails_for(fabric, "alltoall") is None


def test_a_host_without_its_first_port_has_the_others_on_their_rails() -> None:
    fabric = pod(missing=2)
    rails = rails_for(fabric, None)
    assert rails is not None
    for t in range(fabric.terminals):
        assert rails.rail[t] == fabric.terminal_switch[t] % 4


def test_hosts_with_all_ports_on_one_switch_are_no_rails() -> None:
    assert rails_for(pod(mixed=4), None) is None
    forced = rails_for(pod(mixed=8), "rail")
    assert forced is not None and not forced.recognised and not forced.note
    assert len(forced.split(whole(pod(mixed=8))).jobs) == 4
    assert rails_for(pod(mixed=8), None) is None
    with pytest.raises(InputError, match="--traffic 'rails' is neither rail nor alltoall"):
        rails_for(pod(), "rails")


def test_a_history_has_rails_at_every_moment(tmp_path: Path) -> None:
    fabric = pod()
    file = tmp_path / "history.csv"
    file.write_text("job,start,end,nodelist\n7,1767607200,1767610800,n[0-7]\n")
    given = read_site_data(fabric, None, file, None, None, rails=rails_for(fabric, None))
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
    plain, rail = (sar_agent(*command, *more) for more in ((), ("--traffic", "rail")))
    assert "1 multi-switch jobs" in plain.stdout
    assert "; --traffic rail counts only what these send to their like" in plain.stderr
    assert "4 multi-switch jobs" in rail.stdout
    assert "max 2.29 " in rail.stdout
    assert "rail" not in rail.stderr
    quick = ("--no-simulate", "--engine", "minhop", "--engine", "sar-plus")
    said = sar_agent("assess", *same, *quick, "--out", tmp_path / "o").stdout
    assert "\nThe 4 ports of a host end on leaf switches of their own rails, so each is" in said
    said = sar_agent("assess", *same, *quick, "--out", tmp_path / "o", "--traffic", "alltoall")
    assert "rails" not in said.stdout


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
    assert "no HCA matches hfi1_*; the first of its node descriptions is 'n001 mlx5_2'" in (
        done.stderr
    )


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
