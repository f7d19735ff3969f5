"""A cluster with our SPANK plugin, and what the tests of it have in common."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sar_lab.live.slurm import SlurmCluster
from tests.worlds.live.built import built
from tests.worlds.live.jobs import ended


class SpankCluster(SlurmCluster):
    """`arguments(agent=…)` rewrites plugstack.conf; answers are kept under the cluster's folder."""

    def __init__(self, *given: Any, plugin: str = "sar_spank.so", **more: Any) -> None:
        self.plugin = built("slurm_spank", plugin)
        super().__init__(*given, plugstack=f"optional {self.plugin}\n", **more)

    @property
    def state(self) -> Path:
        return self.folder / "answers"

    def arguments(self, **arguments: object) -> None:
        """Sets the plugin's arguments for the next jobs; without arguments the plugin contacts no "
        "agent."""
        # The longest that a start may wait: on a busy machine the usual 50 ms are soon over.
        given = {"munge_socket": self.munge_socket, "state": self.state, "timeout": 100} | arguments
        words = " ".join(f"{key}={value}" for key, value in given.items())
        self.plugstack_conf.write_text(f"optional {self.plugin} {words}\n")

    def attempt(self, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
        """A command that may fail."""
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=240,
            env=self.env() | env,
            cwd=self.folder,
        )

    def tasks_see(self, *options: str, **env: str) -> dict[str, str]:
        """The environment of the tasks of an srun; all tasks must have the same of our names."""
        done = self.attempt("srun", *options, "sh", "-c", 'env; echo "END=$SLURM_PROCID"', **env)
        assert done.returncode == 0, done.stderr
        lines = [line.partition("=") for line in done.stdout.splitlines()]
        tasks = sum(name == "END" for name, _, _ in lines)
        for name in {name for name, _, _ in lines if name.startswith("UCX_")}:
            assert sum(line[0] == name for line in lines) == tasks, name
        return {name: value for name, _, value in lines}

    def log(self) -> str:
        """The log of slurmd and its children."""
        return "\n".join(p.read_text(errors="replace") for p in self.folder.glob("log/slurmd-*"))

    def assert_healthy(self) -> None:
        """No node was drained, none is down, and nothing of Slurm's crashed."""
        said = self.run("scontrol", "show", "node")
        for word in ("DRAIN", "DOWN", "Reason="):
            assert word not in said, said
        for word in ("Segmentation", "signal 11", "AddressSanitizer", "runtime error"):
            assert word not in self.log()

    def assert_completed(self, *jobs: str) -> None:
        """These jobs did what they were to do."""
        for job in jobs:
            shown = ended(self, job)
            assert "JobState=COMPLETED" in shown, shown
            assert "ExitCode=0:0" in shown, shown


@contextmanager
def spank_cluster(nodes: str = "n[001-016]", **more: Any) -> Iterator[SpankCluster]:
    """All nodes idle; healthy to the end."""
    with SpankCluster(nodes, **more) as slurm:
        yield slurm
        slurm.assert_healthy()


def to_file(folder: Path) -> dict[str, str]:
    """Sanitizers report to files: the child that speaks has no stderr to do it on."""
    return {"ASAN_OPTIONS": f"log_path={folder}/sanitizer"}


def assert_no_report(folder: Path) -> None:
    """No sanitizer had anything to say."""
    for report in folder.glob("sanitizer*"):
        raise AssertionError(report.read_text()[:4000])
