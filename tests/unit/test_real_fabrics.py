"""The real fabrics. Expected counts are from grep and awk on the files, not from our reader:

switches `grep -c '^Switch'`, HCAs `grep -c '^Ca'`, their ports `awk '/^Ca/{c=1} /^Switch/{c=0}
/^\\[/{n+=c}'`, inter-switch cables half of `grep -c '^\\[[0-9]*\\][^"(]*"S-'`, hosts the different
first words of `Ca` descriptions plus one for each description without a name.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sar_agent.fabric.components import connected_components
from sar_agent.fabric.db_csv import read_db_csv
from sar_agent.fabric.ibsim_net import write_ibsim_net
from sar_agent.fabric.lids import assign_lids
from sar_agent.fabric.spec import load_fabric
from sar_agent.fabric.subnet_lst import read_subnet_lst, write_subnet_lst
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.quality.measures import measure
from sar_agent.routing import Options, load_engine
from tests.data import data_path
from tests.worlds.db_csv_text import db_csv_of
from tests.worlds.fabric_texts import differences

pytestmark = pytest.mark.data

COUNTS = {
    "psmn-x5": (11, 89, 89, 70, 89),
    "small-2014": (8, 144, 145, 47, 144),
    "selene-storage": (160, 1247, 1247, 2039, 629),
    "dgx-ndr": (40, 582, 582, 532, 233),
    "director-notabs": (400, 2328, 2328, 6395, 383),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name: str) -> None:
    fabric = load_fabric(data_path(f"{name}.ibnetdiscover"))
    assert (
        fabric.switches,
        len(np.unique(fabric.terminal_node_guid)),
        fabric.terminals,
        fabric.channels // 2,
        len(fabric.hosts),
    ) == COUNTS[name]
    assert not connected_components(fabric).any()
    assert fabric.channel_up.all()
    assert fabric.terminal_up.all()


@pytest.mark.parametrize("name", COUNTS)
def test_round_trips(name: str, tmp_path: Path) -> None:
    fabric = load_fabric(data_path(f"{name}.ibnetdiscover"))
    write_ibsim_net(fabric, tmp_path / "net")
    assert differences(load_fabric(tmp_path / "net"), fabric) == []
    lids = assign_lids(fabric)
    write_subnet_lst(fabric, lids, tmp_path / "subnet.lst")
    back = read_subnet_lst((tmp_path / "subnet.lst").read_text())
    assert back.digest == fabric.digest
    assert np.array_equal(back.terminal_lid, lids[1])


@pytest.mark.parametrize("name", COUNTS)
def test_a_db_csv_of_it_has_the_same_fabric_routes_and_measures(name: str) -> None:
    path = data_path(f"{name}.ibnetdiscover")
    fabric, other = load_fabric(path), read_db_csv(db_csv_of(path.read_text()))
    assert differences(other, fabric) == []
    found = []
    for each in (fabric, other):
        mix = synthetic_mix(each, 1)
        routes = load_engine("updn").route(each, mix, Options())
        found.append((routes, measure(each, mix, routes)))
    (routes, measures), (other_routes, others) = found
    assert np.array_equal(routes.egress, other_routes.egress)
    assert np.array_equal(measures.channel_load, others.channel_load)
    assert np.array_equal(measures.channel_efi, others.channel_efi)
    assert measures.jobs_detail == others.jobs_detail
