"""The real ibsim and opensm on our files: they give the same fabric.

`_Simulation` is a minimal harness of its own, independent of `sar_lab.live`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.ibsim_net import net_ids, write_ibsim_net
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.spec import load_fabric
from sar_agent.fabric.subnet_lst import read_subnet_lst
from sar_agent.fabric.xgft import xgft_fabric
from sar_lab.live.process import PATIENCE
from tests.data import data_path
from tests.worlds.fabric_texts import SMALL, differences

UMAD2SIM = Path("/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so")

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        not (shutil.which("ibsim") and shutil.which("opensm") and UMAD2SIM.exists()),
        reason="ibsim or opensm is not installed",
    ),
]


class _Simulation:
    """A running ibsim with a fabric of ours."""

    def __init__(self, fabric: Fabric, folder: Path) -> None:
        self.folder = folder
        write_ibsim_net(fabric, folder / "fabric.net")
        self.tag = f"sar-test-{os.getpid()}-{time.monotonic_ns()}"
        self.log = (folder / "ibsim.log").open("w+")
        limits = ["-N", "4096", "-S", "1024", "-P", "100000", "-L", "49152"]
        self.process = subprocess.Popen(
            ["ibsim", "-s", *limits, "fabric.net"],
            cwd=folder, env=os.environ | {"IBSIM_SOCKNAME": self.tag},
            stdin=subprocess.PIPE, stdout=self.log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.attach_to = net_ids(fabric)[1][int(np.flatnonzero(fabric.terminal_up)[0])]
        deadline = time.monotonic() + 30 * PATIENCE
        while "Network simulator ready" not in self.output():
            assert self.process.poll() is None, self.output()
            assert time.monotonic() < deadline, self.output()
            time.sleep(0.05)

    def output(self) -> str:
        return (self.folder / "ibsim.log").read_text()

    def run(self, *command: str) -> str:
        """Run an InfiniBand program on a host of the simulated fabric."""
        folder = str(self.folder)
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=480, check=False,
            env=os.environ | {
                "LD_PRELOAD": str(UMAD2SIM), "SIM_HOST": self.attach_to, "IBSIM_SOCKNAME": self.tag,
                "OSM_CACHE_DIR": folder, "OSM_TMP_DIR": folder,
            },
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(10)
        self.log.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A short path: ibsim's socket and OpenSM's files are picky."""
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


def _sweep(fabric: Fabric, folder: Path) -> tuple[Fabric, Fabric, str]:
    """(ibnetdiscover's fabric after OpenSM's first sweep, OpenSM's subnet.lst, ibsim's words)."""
    simulation = _Simulation(fabric, folder)
    try:
        simulation.run("opensm", "-o", "-e", "-f", str(folder / "osm.log"), "-D", "0x43")
        seen = read_ibnetdiscover(simulation.run("ibnetdiscover"))
        return seen, read_subnet_lst(folder / "opensm-subnet.lst"), simulation.output()
    finally:
        simulation.stop()


def _sorted_descriptions(fabric: Fabric) -> list[tuple[int, str]]:
    return sorted(zip(fabric.terminal_guid.tolist(), fabric.terminal_description, strict=True))


@pytest.mark.parametrize("spec", ["xgft:2;4,4;1,2", "xgft:3;2,2,2;1,2,2"])
def test_generated(spec: str, folder: Path) -> None:
    fabric = xgft_fabric(spec)
    seen, listed, words = _sweep(fabric, folder)
    assert "ibwarn" not in words
    assert seen.digest == listed.digest == fabric.digest
    assert _sorted_descriptions(seen) == _sorted_descriptions(fabric)
    assert sorted(seen.switch_name) == sorted(listed.switch_name) == sorted(fabric.switch_name)
    assert set(seen.channel_rate.tolist()) == set(listed.channel_rate.tolist()) == {100.0}


def test_odd_guids_parallel_cables_and_lids(folder: Path) -> None:
    """A port GUID that is its node's, one that is not; `#` in a name; the file's LIDs stay."""
    fabric = read_ibnetdiscover(SMALL.replace("a0032", "b0032"))
    seen, listed, words = _sweep(fabric, folder)
    assert "ibwarn" not in words
    assert seen.digest == listed.digest == fabric.digest
    assert _sorted_descriptions(seen) == _sorted_descriptions(fabric)
    for found in (seen, listed):
        lids = dict(zip(found.terminal_guid.tolist(), found.terminal_lid.tolist(), strict=True))
        assert [lids[guid] for guid in fabric.terminal_guid.tolist()] == [12, 11, 13, 15, 16, 14]
    # FDR10 is the one rate that neither ibnetdiscover over ibsim nor OpenSM's file shows.
    rates = dict(zip(seen.terminal_guid.tolist(), seen.terminal_rate.tolist(), strict=True))
    assert [rates[guid] for guid in fabric.terminal_guid.tolist()] == [200, 200, 32, 32, 32, 200]


def test_dead_cables_are_not_there(folder: Path) -> None:
    fabric = xgft_fabric("xgft:2;4,4;1,2").with_links_down([0], [7])
    seen, _, _ = _sweep(fabric, folder)
    dead = {fabric.channel_name(0), fabric.channel_name(int(fabric.channel_reverse[0]))}
    assert dead == {'"S1-0"[5] -> "S2-0"[1]', '"S2-0"[1] -> "S1-0"[5]'}
    live = {fabric.channel_name(c) for c in range(fabric.channels)} - dead
    assert {seen.channel_name(c) for c in range(seen.channels)} == live
    assert set(fabric.terminal_guid.tolist()) - set(seen.terminal_guid.tolist()) == {
        int(fabric.terminal_guid[7])
    }


def test_unlink_at_the_console(folder: Path) -> None:
    """The ids that `net_ids` gives are those the console takes."""
    fabric = xgft_fabric("xgft:2;4,4;1,2")
    simulation = _Simulation(fabric, folder)
    try:
        assert simulation.process.stdin
        simulation.process.stdin.write(b'Unlink "S1-0"[5]\nUnlink "n016"[1]\n')
        simulation.process.stdin.flush()
        deadline = time.monotonic() + 20 * PATIENCE
        while (seen := read_ibnetdiscover(simulation.run("ibnetdiscover"))).terminals == 16:
            assert time.monotonic() < deadline, simulation.output()
    finally:
        simulation.stop()
    assert "n016" not in seen.hosts
    assert seen.channels == fabric.channels - 2


@pytest.mark.data
@pytest.mark.parametrize("name", ["psmn-x5", "small-2014", "dgx-ndr"])
def test_real_fabrics(name: str, folder: Path) -> None:
    fabric = load_fabric(data_path(f"{name}.ibnetdiscover"))
    seen, listed, words = _sweep(fabric, folder)
    assert "ibwarn" not in words
    assert seen.digest == listed.digest == fabric.digest
    assert _sorted_descriptions(seen) == _sorted_descriptions(fabric)
    assert differences(seen, fabric) != []  # the order of discovery is another
    lids = dict(zip(seen.terminal_guid.tolist(), seen.terminal_lid.tolist(), strict=True))
    assert [lids[guid] for guid in fabric.terminal_guid.tolist()] == fabric.terminal_lid.tolist()
