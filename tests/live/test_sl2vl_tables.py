"""OpenSM sends the SL2VL tables that differ, and no others."""

from __future__ import annotations

import pytest

from sar_agent.formats.routes_file import RoutesFile, decode, encode
from tests.worlds.certificates import numbered
from tests.worlds.live.fat_tree import PORTS, FatTree
from tests.worlds.live.site import Site, site

pytestmark = pytest.mark.live
TREE = FatTree(leaves=4, hosts=4, spines=3)
OF_A_PORT = PORTS + 1
"""One table for each port by which packets come in, and one for the switch itself."""
IN_ALL = sum(OF_A_PORT * (2 if "spine" in far else 1) for _, (far, _) in TREE.cables())


def plan(generation: int, shift: int = 0) -> RoutesFile:
    found = numbered(decode(encode(TREE.routes(generation, lanes=2, shift=shift))))
    assert found is not None
    return found


def sent(here: Site) -> int:
    status = here.wait(lambda s: s.settled)
    assert status.unconfirmed_sl2vl_tables == 0
    return status.sl2vl_tables_sent


def sent_in_the_end(here: Site) -> int:
    """Once a sweep sends no more: OpenSM sends a port that came up its tables again in the sweeps
    that traps of it cause."""
    before, last = -1, sent(here)
    while last != before:
        sweeps, before = here.bridge.status().heavy_sweeps, last
        here.sm.sweep()
        here.wait(lambda s, sweeps=sweeps: s.heavy_sweeps > sweeps and s.settled)  # type: ignore[misc]
        last = sent(here)
    return last


def test_a_change_of_jobs_rewrites_no_lanes() -> None:
    with site(TREE) as here:
        here.wait_primed()
        before = sent(here)
        here.load(plan(1))
        first = sent_in_the_end(here)
        assert before < first <= before + IN_ALL

        here.load(plan(2, shift=1))
        assert sent(here) == first, "other routes in the same lanes"


def test_after_a_fallback_engine_what_it_has_changed_is_sent_once() -> None:
    with site(TREE) as here:
        here.wait_primed()
        here.load(plan(1))
        for port in (5, 6):
            here.fabric.unlink("leaf0", port)
        here.fabric.unlink("leaf1", 7)  # leaf0 has spine2 alone, and spine2 does not reach leaf1
        here.wait(lambda s: s.engine_in_force == "dfsssp" and s.settled)
        before = here.bridge.status().sl2vl_tables_sent
        for leaf, port in (("leaf0", 5), ("leaf0", 6), ("leaf1", 7)):
            here.fabric.relink(leaf, port)
        here.sm.sweep()
        here.wait(lambda s: s.settled and s.topology_changes >= 2)
        here.load(plan(2))  # routes in several lanes come back by a load alone
        back = sent_in_the_end(here)
        assert before < back <= before + IN_ALL + 3 * 3 * 2 * OF_A_PORT, (
            "and ports that came up again"
        )
        here.load(plan(3, shift=1))
        assert sent(here) == back
