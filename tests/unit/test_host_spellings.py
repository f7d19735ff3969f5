"""Hosts that Slurm and the fabric spell differently, and hosts that only one of them knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.fabric.by_host import ByHost
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


TWO = SMALL.replace("MT4129 ConnectX7   Mellanox Technologies", "n002 mlx5_0")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Hosts n001 and n002, a job of n001.hpc.example.org and N002, a topology of the same."""
    (tmp_path / "fabric").write_text(TWO)
    (tmp_path / "queue").write_text(
        "1|RUNNING|n001.hpc.example.org,N002|p|u|a|2|2026-01-01T00:00:00|\n"
    )
    (tmp_path / "topology.conf").write_text(
        "SwitchName=a Nodes=n001.hpc.example.org,N002\nSwitchName=b Switches=a\n"
    )
    return tmp_path


def test_with_a_tenth_of_the_hosts_unknown_there_is_no_verdict(site: Path) -> None:
    """Found by an administrator: 135 of 144 hosts were not found, and the answer was "nothing"."""
    queue = site / "queue"
    queue.write_text(queue.read_text() + "2|RUNNING|x[1-3],n001|p|u|a|4|2026-01-01T00:00:00|\n")
    files = ("--fabric", str(site / "fabric"), "--jobs", str(queue), "--out", str(site / "out"))
    found = sar_agent("assess", *files, "--no-simulate")
    assert found.returncode == 1
    text = found.stdout
    assert "No answer is possible: 3 of 6 hosts of the jobs are not in the fabric." in text
    assert "The jobs name x1, x2, x3; the fabric has n001, n002" in text
    assert "nothing to gain" not in text


def test_a_guessed_speed_is_said_in_the_first_lines(site: Path) -> None:
    fabric = site / "fabric"
    fabric.write_text(TWO.replace("4xQDR", "4x???"))
    files = ("--fabric", str(fabric), "--jobs", str(site / "queue"))
    routed = sar_agent("route", *files, "--engine", "minhop", "--out", site / "routes")
    assert "no readable width and speed" in routed.stderr
    assessed = sar_agent("assess", *files, "--no-simulate", "--out", str(site / "out"))
    assert "no readable width and speed" in "\n".join(assessed.stdout.splitlines()[:2])
