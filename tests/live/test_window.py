"""`[update] mode = "window"` with a real OpenSM: routes stay until no job is affected, or until "
"the window ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_lab.live.process import wait_until
from tests.worlds.live.phased import Phased, phased

pytestmark = pytest.mark.live
FIRST = ("n[001,005,009]", "n[002,006]")
SECOND = (*FIRST, "n[003,007,011,015]")
INSIDE_A_LEAF = ("n[001,002]",)
ALWAYS = ["00:00-24:00"]


def assert_waits(site: Phased, words: str) -> None:
    """A plan is wanted, and the tables stay as they are."""
    before, generation = site.dumped(), site.bridge.status().generation_in_force
    site.jobs(*SECOND)
    assert wait_until(lambda: words in site.log(), 30), site.log()
    assert site.bridge.status().generation_in_force == generation
    assert (site.dumped().forwarding == before.forwarding).all()


def test_it_waits_for_the_jobs_and_for_the_hour(tmp_path: Path) -> None:
    with phased(tmp_path, mode="window") as site:
        site.jobs(*FIRST)
        site.start()
        site.wait_installed()  # OpenSM's own routes are not kept for anybody
        assert_waits(site, "waiting until no multi-switch job runs")

        before = site.bridge.status().generation_in_force
        site.jobs(*INSIDE_A_LEAF)
        site.wait_installed(before)
        site.jobs(*FIRST)
        site.kill_agent()

        site.update["windows"] = ALWAYS
        before = site.bridge.status().generation_in_force
        site.start()
        site.wait_installed(before)
