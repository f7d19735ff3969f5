"""What we export is given to the programs that it is for, with the names that sites have: ibsim
loads the network, OpenSM's engine `file` the tables, ibdmchk both; promtool reads the metrics.
The installed slurmctld takes each topology.conf that we write: scontrol then shows the same
switches and nodes, and `topology check` of its output agrees."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import generate_latest

from sar_agent.demand.endpoints import synthetic_mix
from sar_agent.errors import InputError
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.ibsim_net import net_ids
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.export import export_routes
from sar_agent.formats.lfts_dump import parse_tables, read_lfts_dump
from sar_agent.quality.measures import measure
from sar_agent.routing import Options, load_engine
from sar_agent.slurm.conf_lists import read_list, write_list
from sar_agent.slurm.topology_check import check_topology
from sar_agent.slurm.topology_conf import read_topology_conf
from sar_agent.slurm.topology_generate import generate_topology
from sar_agent.slurm.topology_write import FORMS, topology_conf, topology_text
from sar_agent.telemetry.metrics import Metrics
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import find_program
from tests.worlds.live import readback
from tests.worlds.live.ibdmchk import ibdmchk
from tests.worlds.live.slurmctld_only import slurmctld_reads
from tests.worlds.named_fabrics import fabric_of

pytestmark = pytest.mark.live

NAMES = ("small-2014", "psmn-x5", "xgft:2;4,4;1,2", *(f"odd {n}" for n in range(6)))


def plain(name: str) -> str:
    """What ibsim keeps of a description, 63 bytes without quotes, and ibnetdiscover prints: a blank
    for each byte that is no ASCII."""
    kept = re.sub(r'["\x00-\x1f\x7f]', "?", name).encode()[:63].decode(errors="ignore")
    return re.sub(rb"[\x80-\xff]", b" ", kept.encode()).decode()


@pytest.mark.parametrize("name", NAMES)
def test_ibsim_opensm_and_ibdmchk_take_what_we_export(name: str, tmp_path: Path) -> None:
    fabric = fabric_of(name)
    routes = load_engine("updn").route(fabric, synthetic_mix(fabric, 1), Options())
    assert routes.virtual_lanes == 1
    export_routes(tmp_path, fabric, routes, ["lfts", "ibdm", "ibsim"])
    host = net_ids(fabric)[1][int(np.flatnonzero(fabric.terminal_up)[0])]
    options = {"lfts_file": str(tmp_path / "lfts.dump")}
    with (
        Ibsim(tmp_path / "fabric.net") as ibsim,
        OpenSM(ibsim, host=host, routing_engine="file", options=options) as manager,
    ):
        manager.start().wait_up()
        assert "ibwarn" not in ibsim.log()
        seen = read_ibnetdiscover(ibsim.run("ibnetdiscover", host=host).stdout)
        assert seen.digest == fabric.digest
        names = dict(zip(seen.switch_guid.tolist(), seen.switch_name, strict=True))
        for guid, wanted in zip(fabric.switch_guid.tolist(), fabric.switch_name, strict=True):
            assert names[guid] == plain(wanted)
        hosts = dict(zip(seen.terminal_guid.tolist(), seen.terminal_description, strict=True))
        for guid, wanted in zip(
            fabric.terminal_guid.tolist(), fabric.terminal_description, strict=True
        ):
            assert hosts[guid] == plain(wanted)
        entries = readback.wanted(routes_to_file(fabric, routes, 1), manager.lids())
        assert readback.installed(ibsim, host) == entries
    dump = tmp_path / "lfts.dump"
    assert np.array_equal(read_lfts_dump(dump, fabric).egress, routes.egress)
    tables = parse_tables(dump.read_bytes(), dump).on(fabric, "updn")
    assert np.array_equal(tables.egress, routes.egress)
    words = ibdmchk(fabric, routes, tmp_path)
    nodes = fabric.switches + len(set(fabric.terminal_node_guid.tolist()))
    assert f"-I- Defined {nodes}/{nodes} systems/nodes" in words
    assert "Wrong syntax" not in words
    assert "-E-" not in words
    assert "no credit loops found" in words


def test_promtool_takes_the_metrics() -> None:
    fabric = fabric_of("odd 0")
    mix = synthetic_mix(fabric, 1)
    metrics = Metrics("0.2.0", "install", 'an engine of "others" \\ with\na name')
    routes = load_engine("updn").route(fabric, mix, Options())
    metrics.show_measures("in_force", measure(fabric, mix, routes))
    metrics.reroutes.labels("first", "installed").inc()
    done = subprocess.run(
        [find_program("promtool", "prometheus"), "check", "metrics"],
        input=generate_latest(metrics.registry), capture_output=True,
    )  # fmt: skip
    said = done.stderr.decode() + done.stdout.decode()
    assert done.returncode in (0, 3), said  # 3: its taste in names
    assert "error" not in said


DUMPS = ("dgx-ndr", "director-notabs", "psmn-x5", "selene-storage", "small-2014")


def hostnames(text: str, folder: Path) -> list[str]:
    """What `scontrol show hostnames` prints; it only needs any slurm.conf."""
    conf = folder / "slurm.conf"
    conf.write_text("ClusterName=x\nSlurmctldHost=localhost\n")
    command = ["scontrol", "show", "hostnames", text]
    done = subprocess.run(command, env={"SLURM_CONF": str(conf)}, capture_output=True, text=True)
    return list(dict.fromkeys(done.stdout.split("\n")[:-1]))


@pytest.mark.parametrize(
    "name", [*DUMPS, "xgft:3;4,4,4;1,2,2", "torus:4x4,hosts=2", *(f"odd {n}" for n in range(12))]
)
def test_slurmctld_takes_what_generate_writes(name: str, tmp_path: Path) -> None:
    fabric = fabric_of(name)
    try:
        tree = generate_topology(fabric)
    except InputError as error:
        assert "without a host's name" in str(error)
        pytest.skip(str(error))
    nodes = [host for switch in tree.switches for host in switch.nodes]
    heard = slurmctld_reads(topology_conf([(name, tree)]), nodes)
    assert not heard.refused
    assert not [line for line in heard.complaints if "rror" in line], heard.complaints
    shown = tmp_path / "shown"
    shown.write_text(heard.shown)
    topology = read_topology_conf(shown)
    assert not topology.problems
    assert {s.name: (set(s.nodes), set(s.children)) for s in topology.switches.values()} == {
        s.name: (set(s.nodes), set(s.children)) for s in tree.switches
    }
    differences = check_topology(fabric, topology)
    assert all("not in Slurm's topology" in one for one in differences), differences
    assert bool(differences) == bool(tree.notes)


@pytest.mark.parametrize("name", [*DUMPS, "xgft:3;4,4,4;1,2,2", "odd 0", "odd 1"])
def test_slurmctld_takes_blocks(name: str) -> None:
    """From 24.05 on; the blocks in its memory are the leaf switches with their nodes."""
    program = find_program("slurmctld", "slurm-wlm")
    said = subprocess.run([program, "-V"], capture_output=True, text=True).stdout
    major, minor = map(int, said.split()[-1].split(".")[:2])
    if (major, minor) < FORMS["block"][0]:
        pytest.skip(f"{said.strip()} has no topology/block")
    try:
        tree = generate_topology(fabric_of(name))
    except InputError as error:
        pytest.skip(str(error))
    leaves = {switch.name: set(switch.nodes) for switch in tree.switches if switch.nodes}
    text = topology_text([(name, tree)], "block", (major, minor))
    heard = slurmctld_reads(text, sorted(set().union(*leaves.values())), "block")
    assert not heard.refused
    assert not heard.complaints
    shown = re.findall(r"BlockName=(\S+) BlockIndex=\d+ Nodes=(\S+)", heard.shown)
    assert {block: set(read_list(nodes)[0]) for block, nodes in shown} == leaves


@pytest.mark.parametrize("seed", range(4))
def test_scontrol_reads_lists_as_we_do(seed: int, tmp_path: Path) -> None:
    find_program("scontrol", "slurm-wlm")
    choice = random.Random(seed)
    pieces = ["n", "a", ",", " ", "-", "0", "1", "9", "10", "[1-2]", "[01-3,7]", "S", ".", "_", ";"]
    for _ in range(40):
        text = "z" + "".join(choice.choice(pieces) for _ in range(choice.randint(1, 9)))
        names, suffixed = read_list(text)  # a list that begins with - is an option of scontrol
        if not suffixed and not any(name.startswith("-") for name in names):
            assert sorted(hostnames(text, tmp_path)) == sorted(names), text
            assert sorted(hostnames(write_list(names), tmp_path)) == sorted(names)
