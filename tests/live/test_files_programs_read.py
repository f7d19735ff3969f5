"""What we export is given to the programs that it is for, with the names that sites have: ibsim
loads the network, OpenSM's engine `file` the tables, ibdmchk both; promtool reads the metrics.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import generate_latest

from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.ibsim_net import net_ids
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.export import export_routes
from sar_agent.formats.lfts_dump import parse_tables, read_lfts_dump
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.quality.measures import measure
from sar_agent.routing import Options, load_engine
from sar_agent.telemetry.metrics import Metrics
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import find_program
from tests.worlds.live import readback
from tests.worlds.live.ibdmchk import ibdmchk
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
