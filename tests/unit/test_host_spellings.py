"""Hosts: of node descriptions (`HostMapper`), and of names that Slurm and the fabric spell
differently."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.errors import InputError
from sar_agent.fabric.by_host import ByHost
from sar_agent.fabric.hostnames import HostMapper, Kind
from tests.worlds.command_line import sar_agent
from tests.worlds.fabric_texts import SMALL


@pytest.mark.parametrize(
    ("fabric_host", "slurm_host"),
    [("n1", "n1.site.org"), ("n1.site.org", "n1"), ("N1", "n1"), ("n1.a.org", "n1.b.org")],
)
def test_case_and_domain_do_not_matter(fabric_host: str, slurm_host: str) -> None:
    hosts = ByHost({fabric_host: 7, "n2": 8})
    assert slurm_host in hosts and hosts[slurm_host] == hosts.get(slurm_host) == 7
    assert list(hosts) == [fabric_host, "n2"]
    assert "n3" not in hosts and hosts.get("n3", 0) == 0
    with pytest.raises(KeyError):
        hosts["n3"]


def test_a_short_name_of_several_is_nobody_s() -> None:
    hosts = ByHost({"n1.a": 1, "n1.b": 2})
    assert "n1" not in hosts and "n1.c" not in hosts
    assert hosts["n1.a"] == 1
    addresses = ByHost({"10.0.0.1": 1, "10.0.0.2": 2})
    assert addresses["10.0.0.2"] == 2 and "10.0.0.3" not in addresses


def test_a_guessed_speed_is_said_in_the_first_lines(tmp_path: Path) -> None:
    fabric, queue = tmp_path / "fabric", tmp_path / "queue"
    text = SMALL.replace("MT4129 ConnectX7   Mellanox Technologies", "n002 mlx5_0")
    fabric.write_text(text.replace("4xQDR", "4x???"))
    queue.write_text("1|RUNNING|n001.hpc.example.org,N002|p|u|a|2|2026-01-01T00:00:00|\n")
    files = ("--fabric", fabric, "--jobs", queue)
    routed = sar_agent("route", *files, "--engine", "minhop", "--out", tmp_path / "routes")
    assert "no readable width and speed" in routed.stderr
    assessed = sar_agent("assess", *files, "--no-simulate", "--out", tmp_path / "out")
    assert "no readable width and speed" in "\n".join(assessed.stdout.splitlines()[:2])


@pytest.mark.parametrize(
    ("description", "host", "hca"),
    [
        ("n001 HCA-1", "n001", "HCA-1"),
        ("stage97 mlx4_0", "stage97", "mlx4_0"),
        ("SAT111092710053 ibp11s0f0", "SAT111092710053", "ibp11s0f0"),
        ("knl-01 hfi1_0", "knl-01", "hfi1_0"),
        ("selene-cache-1 mlx5_0 ", "selene-cache-1", "mlx5_0"),
        ("n001", "n001", ""),
        ("n001.cluster.org HCA-2", "n001", "HCA-2"),
        ("10.1.2.3 HCA-2", "10.1.2.3", "HCA-2"),
        ("MF0;ib5:SX6036/U1", "ib5", "SX6036/U1"),
        ("MT25408 ConnectX Mellanox Technologies", None, ""),
        ("MT4129 ConnectX7   Mellanox Technologies", None, ""),
        ("localhost HCA-3", None, ""),
        ("", None, ""),
    ],
)
def test_default(description: str, host: str | None, hca: str) -> None:
    assert HostMapper()(description) == (host, hca, Kind.COMPUTE)


def test_lists_as_config_files_give_them() -> None:
    mapper = HostMapper(storage_hosts=["a*"])  # type: ignore[arg-type]
    assert hash(mapper) == hash(HostMapper(storage_hosts=("a*",)))


@pytest.mark.parametrize("pattern", ["(?P<host>", r"(\w+) .*"])
def test_bad_pattern(pattern: str) -> None:
    with pytest.raises(InputError) as caught:
        HostMapper(host_pattern=pattern)
    assert str(caught.value).startswith(f"host_pattern: {pattern!r}")
