"""Partitions of a real OpenSM, kept apart by pftree-ext through the plugin, as the fabric says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sar_agent.check import check_routes
from sar_agent.fabric.spec import parse_fabric
from sar_agent.formats.conversion import routes_to_file
from sar_agent.jobs import JobMix
from sar_agent.jobs.partition_policy import read_partitions
from sar_agent.routing import Options, load_engine
from tests.worlds.live.fat_tree import FatTree
from tests.worlds.live.readback import service_level
from tests.worlds.live.site import site

pytestmark = pytest.mark.live
GOLD, SILVER = ("n002", "n006", "n010", "n014"), ("n003", "n004", "n007", "n011", "n015", "n016")
POLICY = """\
conf = "partitions.conf"
[partition.gold]
policy = "phy"
[partition.silver]
policy = "vlane"
"""


def test_partitions_are_kept_apart_on_the_fabric(tmp_path: Path) -> None:
    tree = FatTree()
    fabric = parse_fabric(tree.net(), "tree")
    guid = tree.terminals()

    def members(hosts: tuple[str, ...]) -> str:
        return ", ".join(f"0x{guid[host]:016x}=full" for host in hosts)

    conf = tmp_path / "partitions.conf"
    conf.write_text(
        "Default=0x7fff, ipoib : ALL=full, SELF=full ;\n"
        f"gold=0x0001 : {members(GOLD)} ;\nsilver=0x0002 : {members(SILVER)} ;\n"
    )
    (tmp_path / "policy.toml").write_text(POLICY)
    partitions, notes = read_partitions(tmp_path / "policy.toml", fabric, JobMix(()))
    assert notes == []
    options = Options(partitions=partitions, max_lanes=8)
    routes = load_engine("pftree-ext").route(fabric, JobMix(()), options)
    assert check_routes(fabric, routes).passed and routes.virtual_lanes == 2
    with site(tree, options={"partition_config_file": str(conf)}) as here:
        file = routes_to_file(fabric, routes, 7)
        here.load(file)
        here.assert_in_force(file)
        # The manager knows the same partitions.
        for host, key in (("n006", "0x8001"), ("n007", "0x8002")):
            assert key in here.tool("smpquery", "pkeys", str(here.lid(host)))
        # Lanes: silver's own, for all others the first.
        assert service_level(here, "n003", "n011") == 1
        assert service_level(here, "n002", "n014") == 0
        assert service_level(here, "n001", "n012") == 0
        rows = re.findall(
            r"^ports: .*: \|(.*)$", here.tool("smpquery", "sl2vl", str(here.lid("spine0")), "2"),
            re.MULTILINE,
        )  # fmt: skip
        assert rows and {row.split("|")[:2] == [" 0", " 1"] for row in rows} == {True}
        # Gold's spine carries nobody else between members, followed in the tables that are there.
        used = {name: spines(here, hosts) for name, hosts in (("gold", GOLD), ("silver", SILVER))}
        assert not used["gold"] & used["silver"]


def spines(here, hosts: tuple[str, ...]) -> set[tuple[str, int]]:
    """(leaf switch, port) of every way up that members of a partition take, by ibroute."""
    found = set()
    names = list(here.tree.terminals())
    for leaf in range(here.tree.leaves):
        text = here.tool("ibroute", str(here.lid(f"leaf{leaf}")))
        port = {int(a, 16): int(b) for a, b in re.findall(r"^(0x[0-9a-f]+) (\d+) :", text, re.M)}
        here_too = [h for h in hosts if names.index(h) // here.tree.hosts == leaf]
        if here_too:
            found |= {
                (f"leaf{leaf}", port[here.lid(host)]) for host in hosts if host not in here_too
            }
    return found
