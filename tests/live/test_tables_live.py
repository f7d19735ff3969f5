"""Tables of a stock OpenSM, from its dumps and the tools' output: measured and checked."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sar_agent.check import check_routes
from sar_agent.errors import InputError
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.spec import load_fabric
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.formats.read_tables import read_tables
from sar_lab.live.generated import ibsim_for
from sar_lab.live.ibsim import Ibsim
from sar_lab.live.opensm import OpenSM
from sar_lab.live.process import wait_for
from tests.worlds.command_line import sar_agent

pytestmark = pytest.mark.live


def whole_ibroute(ibsim: Ibsim, lid: int) -> str:
    """What ibroute prints of a switch, once every node has answered it: it asks each node for its
    GUID, and prints the entry without one if the answer is late."""
    for _ in range(50):
        text = ibsim.run("ibroute", str(lid), host="n002").stdout
        entries = re.findall(r"^0x.*", text, re.M)
        if entries and all("portguid" in entry for entry in entries):
            return text
    raise AssertionError(text)


@pytest.mark.parametrize(("engine", "lmc"), [("minhop", 1), ("dfsssp", 0)])
def test_tables_of_today_by_all_their_names(
    engine: str, lmc: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = xgft_fabric("xgft:2;4,6;1,3")
    with (
        ibsim_for(tree) as ibsim,
        OpenSM(ibsim, host="n001", routing_engine=engine, options={"lmc": str(lmc)}) as sm,
    ):
        sm.wait_up()
        names = ("opensm-lfts.dump", "opensm.fdbs", "opensm-subnet.lst")
        wait_for(lambda: all((sm.dump_dir / name).exists() for name in names), 20, "dumps")
        seen = tmp_path / "cluster.ibnetdiscover"
        seen.write_text(ibsim.run("ibnetdiscover", host="n002").stdout)
        (tmp_path / "dump_fts.txt").write_text(ibsim.run("dump_fts", host="n002").stdout)
        fabric = read_ibnetdiscover(seen.read_text())
        lids = sorted(int(lid) for lid in fabric.switch_lid)
        (tmp_path / "ibroute.txt").write_text("".join(whole_ibroute(ibsim, lid) for lid in lids))
        for name in names:
            (tmp_path / name).write_bytes((sm.dump_dir / name).read_bytes())
    found = {
        name: read_tables(tmp_path / name, fabric)
        for name in ("opensm-lfts.dump", "opensm.fdbs", "dump_fts.txt", "ibroute.txt")
    }
    assert len({routes.digest for routes in found.values()}) == 1
    assert len(found["opensm.fdbs"].egress) == 1 + lmc
    again = load_fabric(str(tmp_path / "opensm-subnet.lst"))
    if lmc:
        with pytest.raises(InputError, match=r"with an LMC, .*subnet\.lst has no LMC"):
            read_tables(tmp_path / "opensm.fdbs", again)
    else:
        assert check_routes(again, read_tables(tmp_path / "opensm.fdbs", again)).passed
    given = ["--fabric", seen, "--routes", tmp_path, "--json"]
    said = json.loads(sar_agent("check", *given, "--from", tmp_path / "ibroute.txt").stdout)
    assert (said["engine"], said["ok"], said["entries_changed"]) == ("opensm", True, 0)
    measured = sar_agent("measure", *given, "--jobs", "mix:1")
    assert json.loads(measured.stdout)["effective_efi_max"] > 0
