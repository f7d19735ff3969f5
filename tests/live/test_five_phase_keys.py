"""Routing keys beside five-phase updates: neither gets into the other's way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sar_agent.services.keys import client as key
from sar_lab.live.process import wait_until
from tests.worlds.live.phased import Phased, phased

pytestmark = pytest.mark.live
FIRST = ("n[001,005,009]", "n[002,006]")
SECOND = (*FIRST, "n[003,007,011,015]")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Phased]:
    """Two jobs that have subscribed and use offset 0; a port has offsets 2 and 3 for keys. A
    subscriber whose lease ends moves by itself: on a busy machine two seconds were too few."""
    with phased(tmp_path, lmc=2, lease_seconds=20) as here:
        monkeypatch.setenv("SAR_AGENT", str(here.socket))
        monkeypatch.setenv("SAR_MUNGE_SOCKET", str(here.munge))
        here.jobs(*FIRST)
        here.start()
        here.wait_installed()
        here.subscribe(1)
        here.subscribe(2)
        here.wait_subscribed(2)
        here.wait_all_on(0)
        yield here
    here.assert_model_could()


def moves(site: Phased) -> list[int]:
    return [len(one.events("move")) for one in site.subscribers]


def test_a_key_moves_nobody_and_an_update_leaves_it_alone(site: Phased) -> None:
    before, moved = site.dumped(), moves(site)
    with key.phase("halo", pattern="shift:1", job="1") as mine:
        assert (mine.offset, mine.sentence) == (2, "")
        keyed = site.dumped()
        changed = (before.forwarding != keyed.forwarding).any(axis=(1, 2))
        assert changed.tolist() == [False, False, True, False]
        assert moves(site) == moved

        site.jobs(*SECOND)
        site.wait_installed(keyed.generation)
        site.wait_all_on(0)
        row = site.rows()[0]
        assert row.how == "five-phase" and row.phases is not None
        updated = site.dumped()
        assert (keyed.forwarding[0] != updated.forwarding[0]).any()
        assert [one["phase"] for one in key.keys(job="1")] == ["halo"]
        ports = np.flatnonzero((before.forwarding[2] != keyed.forwarding[2]).any(axis=0))
        assert (
            len(ports) and (keyed.forwarding[2][:, ports] == updated.forwarding[2][:, ports]).all()
        )
    assert wait_until(lambda: key.keys(job="1") == [], 10)


def test_a_key_that_is_asked_for_in_the_middle_of_an_update_comes_after_it(site: Phased) -> None:
    second = site.subscribers[1].process
    second.send_signal(signal.SIGSTOP)
    site.jobs(*SECOND)
    site.wait_all_on(1, site.subscribers[0])
    found: list[key.Key] = []

    def ask() -> None:
        found.append(key.request("halo", pattern="shift:1", job="1"))

    asking = threading.Thread(target=ask)
    asking.start()
    asking.join(1)
    assert asking.is_alive() and site.saved_phase() == "unpath"
    second.send_signal(signal.SIGCONT)
    asking.join(30)
    assert [one.offset for one in found] == [2], (found, site.log())
    assert site.rows()[0].how == "five-phase"
    site.wait_all_on(0)
