"""One agent a site."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sar_agent.agent.daemon import only_agent
from sar_agent.config.model import Config
from sar_agent.errors import SarError, Unavailable
from sar_agent.util.lock_file import Lock, holder

CHILD = """
import sys, pathlib
from sar_agent.util.lock_file import Lock
with Lock(pathlib.Path(sys.argv[1]), "agent.lock"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_second_says_who_has_it_and_a_kill_frees_it(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(root)},
    ) as child:
        assert child.stdout is not None and child.stdout.readline() == b"held\n"
        with (
            pytest.raises(Unavailable, match=f"held by process {child.pid} since 2") as caught,
            Lock(tmp_path, "agent.lock", patience=0.0),
        ):
            pass
        assert caught.value.exit_code == 1
        assert holder(tmp_path, "agent.lock").startswith(f"process {child.pid} since")
        child.kill()
        child.wait()
        assert holder(tmp_path, "agent.lock") == ""
        with Lock(tmp_path, "agent.lock"):
            assert holder(tmp_path, "agent.lock").startswith(f"process {os.getpid()} ")


def test_two_agents_with_states_of_their_own_do_not_share_an_opensm(tmp_path: Path) -> None:
    """They replaced each other's routes at every pass."""

    def config(name: str, mode: str) -> Config:
        agent = {"mode": mode, "state_dir": tmp_path / name, "run_dir": tmp_path / "run"}
        return Config.model_validate({"agent": agent})

    with only_agent(config("one", "install")):
        with (
            pytest.raises(
                Unavailable, match=r"another agent runs, stop one of them .*run/agent\.lock"
            ),
            only_agent(config("two", "install")),
        ):
            pass
        with only_agent(config("two", "observe")):
            pass
    with only_agent(config("two", "install")):
        pass


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(SarError, match="may this user write there"),
        Lock(tmp_path / "file", "agent.lock"),
    ):
        pass
