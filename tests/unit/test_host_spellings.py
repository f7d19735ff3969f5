"""Hosts: of node descriptions (`HostMapper`), and of names that Slurm and the fabric spell
differently."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_agent.config.model import ConfigError, parse_config
from sar_agent.errors import InputError
from sar_agent.fabric.by_host import ByHost
from sar_agent.fabric.hostnames import HostMapper, Kind
from sar_agent.fabric.spec import load_fabric, parse_fabric
from tests.worlds.command_line import sar_agent
from tests.worlds.fabric_texts import SMALL, ibnetdiscover_text


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


def described(names: dict[int, str]) -> str:
    """A fabric of sixteen hosts in ibnetdiscover's format, with these descriptions by number."""
    text = ibnetdiscover_text(load_fabric("xgft:2;4,4;1,2"))
    for number, name in names.items():
        text = text.replace(f'"n{number:03d} HCA-1"', f'"{name}"')
    return text


def test_hosts_of_two_domains_keep_their_full_names() -> None:
    names = {n: f"n00{n}.alpha.site mlx5_0" for n in (1, 2)}
    names |= {n: f"n00{n - 4}.beta.site mlx5_0" for n in (5, 6)} | {7: "m7.beta.site mlx5_0"}
    fabric = parse_fabric(described(names), "two")
    assert {"n001.alpha.site", "n001.beta.site", "n002.beta.site", "m7"} <= fabric.hosts.keys()
    assert fabric.hosts.name_of("N001.beta.site") == "n001.beta.site"
    assert "n001" not in fabric.hosts, "which of both?"
    (note,) = fabric.notes
    assert note.startswith("2 short names are of hosts of several domains") and "n001" in note


@pytest.mark.parametrize(
    ("text", "count", "hosts"),
    [
        ("linux", 5, 0),
        ("linux", 2, 1),
        ("n099", 8, 1),  # eight adapters of a GPU host, none of which is named
        ("node mlx5_0", 4, 0),
        ("image7", 16, 1),
    ],
)
def test_what_many_adapters_are_called_is_no_host(text: str, count: int, hosts: int) -> None:
    fabric = parse_fabric(described(dict.fromkeys(range(1, count + 1), text)), "many")
    assert (text.split()[0] in fabric.hosts) == bool(hosts)
    said = [note for note in fabric.notes if "no hosts' names" in note]
    assert len(said) == 1 - hosts and (hosts or f'"{text}" ({count})' in said[0])


def test_what_slurm_calls_nodes_is_a_setting_and_an_option(tmp_path: Path) -> None:
    """Descriptions have ib-1 and rack2-07; Slurm calls these node001 and gpu7."""
    names = {n: f"ib-{n} mlx5_0" for n in range(1, 9)} | {9: "RACK2-07.site mlx5_0"}
    dump = tmp_path / "dump"
    dump.write_text(described(names))
    pairs = ("node[001-008]=ib-[1-8]", "gpu7=rack2-07", "n*=host*")
    hosts = load_fabric(str(dump), HostMapper(slurm_names=pairs)).hosts
    assert {"node001", "node008", "gpu7", "n010"} <= hosts.keys() and "ib-1" not in hosts
    options = [word for pair in pairs[:2] for word in ("--slurm-names", pair)]
    queue = tmp_path / "queue"
    queue.write_text("7|RUNNING|node[001,005],gpu7|p|u|a|3|2026-01-01T00:00:00|\n")
    where = ("--fabric", dump, "--jobs", queue)
    done = sar_agent("link", "--job", "7", "--line", *where, *options)
    assert done.returncode == 0 and "job 7" in done.stdout and "not in" not in done.stderr
    done = sar_agent("topology", "generate", "--fabric", dump, *options)
    assert "Nodes=node[001-004]" in done.stdout and "Nodes=gpu7,n[010-012]" in done.stdout
    config = tmp_path / "agent.toml"
    config.write_text(f"[fabric]\nslurm_names = {list(pairs[:2])!r}\n".replace("'", '"'))
    assert sar_agent("link", "ib-3 mlx5_0", *where, "--config", config).returncode == 0
    assert sar_agent("link", "node003", *where, "--config", config).returncode == 0
    done = sar_agent("cables", "--fabric", dump, "--slurm-names", "node*=c*")
    assert done.returncode == 2 and "the first is ib-1" in done.stderr, done.stderr


@pytest.mark.parametrize(
    "pair", ["a", "=b", "a=", "a=b=c", "*=b", "a*=b**", "n[1-2]=c[1-3]", "n[a]=b", "n[1-=b"]
)
def test_what_is_no_pair_of_names_is_refused(pair: str) -> None:
    with pytest.raises(ConfigError, match=r"fabric\.slurm_names"):
        parse_config(f'[fabric]\nslurm_names = ["{pair}"]')
