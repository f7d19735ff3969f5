"""A plan's routes in the file that the plugin reads."""

from __future__ import annotations

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.routes_file import NO_SWITCH, decode, encode
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from tests.worlds.grids import torus

RING = torus((5,))


def routed(fabric: Fabric) -> Routes:
    return load_engine("dfsssp").route(fabric, JobMix.of([]), Options())


def test_every_file_says_where_cables_end_and_who_sends() -> None:
    file = decode(encode(routes_to_file(RING, routed(RING), 1)))
    ends = file.far_ends[file.far_ends != NO_SWITCH]
    assert len(ends) == 2 * RING.switches, "two ends a cable between switches, and a ring of them"
    for s, row in enumerate(file.far_ends):
        for port in np.flatnonzero(row != NO_SWITCH):
            far, far_port = int(row[port]) >> 8, int(row[port]) & 255
            assert file.far_ends[far, far_port] == s << 8 | port, "and back"
    assert file.senders.tolist() == [1] * RING.switches
    proved = np.arange(RING.switches) == 2
    assert routes_to_file(RING, routed(RING), 1, senders=proved).senders.tolist() == [0, 0, 1, 0, 0]
