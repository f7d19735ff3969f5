"""The judge of real repairs."""

from __future__ import annotations

from pathlib import Path

from sar_lab.live.ibdmchk import IbdmchkVerdict, ibdmchk
from sar_lab.live.process import wait_for
from tests.worlds.live.site import Site


def dumped_by_opensm(here: Site, name: str) -> Path:
    """OpenSM writes its dump files at the end of a heavy sweep."""
    before = here.bridge.status().routings
    ups = here.sm.log().count("SUBNET UP")
    here.sm.sweep()
    here.wait(lambda s: s.routings > before)
    wait_for(lambda: here.sm.log().count("SUBNET UP") > ups, 10, "the end of the sweep")
    return here.sm.dump_dir / name


def verdict(here: Site) -> IbdmchkVerdict:
    dumped_by_opensm(here, "opensm.fdbs")
    return ibdmchk(here.sm, here.dumped(), here.lids())
