"""The real fabrics. Expected counts are from grep and awk on the files, not from our reader:

switches `grep -c '^Switch'`, HCAs `grep -c '^Ca'`, their ports `awk '/^Ca/{c=1} /^Switch/{c=0}
/^\\[/{n+=c}'`, inter-switch cables half of `grep -c '^\\[[0-9]*\\][^"(]*"S-'`, hosts the different
first words of `Ca` descriptions plus one for each description without a name.
"""

from __future__ import annotations

import numpy as np
import pytest

from sar_agent.fabric.components import connected_components
from sar_agent.fabric.spec import load_fabric
from tests.data import data_path

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
