"""topology.conf edited in every way an editor or a deployment does it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sar_agent.slurm.topology_watch import TopologyWatcher


def conf(*nodes: str) -> str:
    return "".join(f"SwitchName=leaf{n} Nodes={node}\n" for n, node in enumerate(nodes, 1))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "slurm"
    folder.mkdir()
    (folder / "topology.conf").write_text(conf("n1"))
    return folder / "topology.conf"


class Watched:
    """A running watcher and the event its callback sets."""

    def __init__(self, path: Path) -> None:
        self.event = threading.Event()
        self.watcher = TopologyWatcher(path, on_event=self.event.set)

    @contextmanager
    def running(self) -> Iterator[None]:
        self.watcher.start()
        try:
            yield
        finally:
            self.watcher.stop()

    def sees(self, host: str) -> bool:
        """Whether an event came, and asked after it, the watcher knows `host`."""
        while self.event.wait(10):
            self.event.clear()
            self.watcher.changed()
            if self.watcher.topology and self.watcher.topology.leaf_of(host):
                return True
        return False


@pytest.fixture
def watched(path):
    one = Watched(path)
    with one.running():
        yield one


def test_an_edit_by_rename(path, watched):
    path.with_name(".swp").write_text(conf("n1", "n2"))
    path.with_name(".swp").rename(path)
    assert watched.sees("n2")


def test_a_new_include_and_an_edit_of_it(path, watched):
    other = path.parent / "sub" / "more.conf"
    other.parent.mkdir()
    other.write_text("SwitchName=x Nodes=n7\n")
    path.write_text(conf("n1") + "Include sub/more.conf\n")
    assert watched.sees("n7")
    other.write_text("SwitchName=x Nodes=n7,n8\n")
    assert watched.sees("n8")


def test_a_missing_directory_keeps_the_last_good(path, watched):
    shutil.rmtree(path.parent)
    assert watched.event.wait(10)
    assert not watched.watcher.changed()
    assert "no such file" in watched.watcher.problem
    assert watched.watcher.topology.leaf_of("n1") == {"leaf1"}
    path.parent.mkdir()
    path.write_text(conf("n1", "n2"))
    assert watched.sees("n2")
    assert watched.watcher.problem == ""


@pytest.mark.parametrize("depth", ["file", "directory"])
def test_a_flipped_link(tmp_path, depth):
    for version, nodes in (("v1", ["n1"]), ("v2", ["n1", "n2"])):
        (tmp_path / version).mkdir()
        (tmp_path / version / "topology.conf").write_text(conf(*nodes))
    name = "topology.conf" if depth == "file" else ""
    link = tmp_path / "etc" / "current"
    link.parent.mkdir()
    link.symlink_to(Path("..") / "v1" / name)
    one = Watched(link if depth == "file" else link / "topology.conf")
    with one.running():
        fresh = link.with_name("fresh")
        fresh.symlink_to(Path("..") / "v2" / name)
        fresh.rename(link)
        assert one.sees("n2")
        (tmp_path / "v2" / "topology.conf").write_text(conf("n1", "n2", "n3"))
        assert one.sees("n3")


def test_structural_problems_are_told_and_the_rest_is_kept(path):
    path.write_text(conf("n1", "n1") + "SwitchName=top Switches=gone\n")
    watcher = TopologyWatcher(path)
    assert watcher.topology.leaf_of("n1") == {"leaf1", "leaf2"}
    assert "two leaf switches" in watcher.problem
    assert watcher.problem.endswith("(and 1 more)")
