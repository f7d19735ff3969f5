"""HCAs chosen by name or port, where a host has several: `fabric.job_hcas` and `--hca`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sar_agent.fabric import Fabric
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.opensm_file import decode_opensm_fabric
from sar_agent.fabric.spec import parse_fabric
from sar_agent.jobs.mapping import mix_of_records
from sar_agent.jobs.record import JobRecord
from tests.worlds.command_line import sar_agent
from tests.worlds.fabric_texts import SMALL
from tests.worlds.opensm_files import image_of_text

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
