"""docs/slurm.md, followed step by step on a cluster that has nothing of ours yet.

What a page's reader has under /etc and /usr lies in scratch folders here, so paths in its snippets
are replaced; nothing else is.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sar_lab.live.process import wait_until
from sar_lab.live.slurm import SlurmCluster
from tests.worlds.doc_blocks import blocks
from tests.worlds.live.built import ROOT
from tests.worlds.live.events import Agent
from tests.worlds.live.jobs import ended

pytestmark = pytest.mark.live
PAGE = ROOT / "docs" / "slurm.md"
STEPS = re.split(r"^## ", PAGE.read_text(), flags=re.M)


class Reader:
    """Does what a section of the page says."""

    def __init__(self, slurm: SlurmCluster, agent: Agent, root: Path) -> None:
        self.slurm, self.agent, self.root = slurm, agent, root
        self.printed = ""
        (root / "bin").mkdir(parents=True)
        sudo = root / "bin" / "sudo"
        sudo.write_text('#!/bin/sh\n[ "$1" = --preserve-env ] && shift\nexec "$@"\n')
        sudo.chmod(0o755)

    def section(self, title: str) -> None:
        text = next(step for step in STEPS if step.startswith(title))
        page = self.root / "section.md"
        page.write_text(text)
        for what, argument, content in blocks(page):
            if what == "file":
                self._append(argument, content)
            elif what == "prints":
                wanted = content
                assert self.printed == wanted or (argument and wanted in self.printed)
            else:
                self._run(content, refused="refused" in argument)

    def _here(self, text: str) -> str:
        """With the scratch folders' paths."""
        plugin = next(self.root.glob("usr/lib/**/sar_spank.so"), "")
        for there, here in (
            ("/etc/slurm/", f"{self.slurm.folder}/"),
            ("/usr/bin/sar-notify", f"{self.root}/usr/bin/sar-notify"),
            ("agent=/run/sar-agent/events.sock", self._address()),
            ("agent=sar1:9778", self._address()),
            ("optional sar_spank.so", f"optional {plugin} munge_socket={self.slurm.munge_socket}"),
            ("slurm_spank install", f"slurm_spank install DESTDIR={self.root}"),
        ):
            text = text.replace(there, here)
        return text

    def _address(self) -> str:
        return f"agent={self.agent.address} munge_socket={self.slurm.munge_socket}"

    def _append(self, name: str, content: str) -> None:
        file = self.slurm.folder / name
        old = file.read_text() if name == "slurm.conf" else ""
        # The test's cluster has no such line yet; at the end of the file they would belong to it.
        file.write_text(self._here(content) + old)

    def _run(self, script: str, refused: bool) -> None:
        if script.startswith("sudo systemctl restart slurmctld "):
            self.slurm.stop_controller()
            return self.slurm.start_controller()
        if script.startswith("sudo systemctl restart slurmd "):
            self.slurm.restart_nodes()
            return self.slurm.wait_idle()
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", self._here(script)],
            cwd=ROOT,
            env=self.slurm.env()
            | {"PATH": f"{self.root}/bin:{self.root}/usr/bin:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=480,
        )
        assert (done.returncode != 0) == refused, f"{script}\n{done.stdout}\n{done.stderr}"
        self.printed = done.stderr if refused else done.stdout
        for script in ("slurmctld-prolog", "slurmctld-epilog"):  # what the page says stands in them
            file = self.slurm.folder / script
            if file.exists() and str(self.root) not in (text := file.read_text()):
                file.write_text(self._here(text))
        return None


@pytest.fixture
def reader(tmp_path) -> Iterator[Reader]:
    with SlurmCluster() as slurm, Agent(slurm.munge_socket) as agent:
        yield Reader(slurm, agent, tmp_path)
        assert "DRAIN" not in slurm.run("scontrol", "show", "node")


def one_job(reader: Reader, *options: str) -> str:
    job = reader.slurm.run("sbatch", "--parsable", *options, "--wrap", "srun true").strip()
    assert "JobState=COMPLETED" in ended(reader.slurm, job)
    assert wait_until(lambda: not reader.slurm.squeue("-h"), 30)
    return job


def test_the_controller_s_way(reader):
    reader.section("1.")
    reader.section("2.")
    (by_hand,) = reader.agent.heard("1", "start")
    assert by_hand.payload["nodes"] == "n001"
    reader.agent.events.clear()
    job = one_job(reader, "-N2", "-w", "n[001-002]")
    (start,) = reader.agent.heard(job, "start")
    (end,) = reader.agent.heard(job, "end")
    assert start.uid == end.uid == 0
    assert start.payload["nodes"] == "n[001-002]"
    assert start.payload["user"] == 0
    assert "traffic" not in start.payload
    reader.section("3.")
    job = one_job(reader, "-N2", "--sar-traffic=ring")
    (start,) = reader.agent.heard(job, "start")
    assert start.payload["traffic"] == "ring"
    reader.section("4.")
    for comment, wanted in ((), "sar:shift:3"), (("--comment=sar:ring",), "sar:ring"):
        job = reader.slurm.salloc(1, "--sar-traffic=shift:3", *comment)
        assert reader.slurm.squeue("-h", "-j", job, "-o", "%k").strip() == wanted
    job = reader.slurm.salloc(1, "--comment=mine")
    assert reader.slurm.squeue("-h", "-j", job, "-o", "%k").strip() == "mine"


def test_the_nodes_way(reader):
    reader.section("1.")
    reader.section("3.")
    reader.section("Or: SPANK")
    reader.agent.answer = {"ok": True, "env": {"UCX_IB_NUM_PATHS": "1"}}
    job = one_job(reader, "-N3", "--sar-traffic=ring")
    assert len(reader.agent.heard(job, "start", 3)) == 3
    assert len(reader.agent.heard(job, "end", 3)) == 3

    def tasks_are_told() -> bool:
        """Not of every job: the plugin's usual 50 ms are soon over on a busy machine."""
        return reader.slurm.run("srun", "sh", "-c", "echo $UCX_IB_NUM_PATHS") == "1\n"

    assert wait_until(tasks_are_told, 20)


def test_the_page_is_followed() -> None:
    """So that a lost marker does not make the tests above pass on nothing."""
    kinds = [what for what, _, _ in blocks(PAGE)]
    assert (kinds.count("run"), kinds.count("file"), kinds.count("prints")) == (8, 4, 1)
