"""`sar-agent run` as systemd starts it, without Slurm, OpenSM or root."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sar_agent.fabric.ibsim_net import write_ibsim_net
from sar_agent.fabric.spec import load_fabric
from sar_lab.live.agent import AT_ONCE
from tests.worlds.fake_squeue import fake_squeue

pytestmark = pytest.mark.live
ROOT = Path(__file__).parents[2]
CLI = [sys.executable, "-c", "from sar_agent.cli import main; main()"]


def config(folder: Path, **agent: object) -> Path:
    write_ibsim_net(load_fabric("xgft:2;4,4;1,2"), folder / "fabric.net")
    keys = {
        "state_dir": str(folder / "state"),
        "run_dir": str(folder / "run"),
        "metrics_address": "",
        "interval_seconds": 0.1,
        **AT_ONCE,
    } | agent
    squeue = fake_squeue(folder, [{"%i": "1", "%N": "n[001,005]"}])
    path = folder / "sar-agent.toml"
    path.write_text(
        "[agent]\n"
        + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
        + f'[slurm]\nsqueue = ["{squeue}"]\ntopology_conf = ""\n'
        + f'[fabric]\nfile = "{folder}/fabric.net"\n'
        + f'[opensm]\nplugin_socket = "{folder}/none.sock"\npoll_seconds = 0.05\n'
    )
    return path


def test_ready_alive_stopping(tmp_path: Path) -> None:
    path = config(tmp_path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(800)  # the first pass compiles
        env = os.environ | {"PYTHONPATH": str(ROOT), "NOTIFY_SOCKET": str(tmp_path / "notify")}
        with subprocess.Popen(
            [*CLI, "run", "--config", str(path)], env=env, stderr=subprocess.PIPE, text=True
        ) as agent:
            try:
                assert systemd.recv(4096) == b"READY=1"
                said = systemd.recv(4096).decode()
                assert said.startswith("WATCHDOG=1\nSTATUS=no routes were made yet; planned")
                assert systemd.recv(4096) == b"WATCHDOG=1", "also between two passes"
                while b"STATUS=the same 1 multi-switch job" not in systemd.recv(4096):
                    pass
                agent.send_signal(signal.SIGTERM)
                while (last := systemd.recv(4096)) != b"STOPPING=1":
                    assert last.startswith(b"WATCHDOG=1")
                assert agent.wait(60) == 0
                assert agent.stderr is not None
                log = agent.stderr.read()
            finally:
                agent.kill()
    assert log.startswith("sar-agent ") and "observe mode" in log.splitlines()[0]
    assert "the same 1 multi-switch job on the same fabric" in log
    assert log.endswith("the routes in force stay\n")
    assert "Traceback" not in log


def cli(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CLI, *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=480,
    )


def test_exit_codes_and_single_sentences(tmp_path: Path) -> None:
    good = str(config(tmp_path))
    once = cli("once", "--config", good, "--json")
    assert once.returncode == 0
    assert json.loads(once.stdout)["result"] == "planned"
    installing = cli("once", "--config", str(config(tmp_path, mode="install")))
    assert installing.returncode == 1
    assert "plugin is not there" in installing.stderr.splitlines()[-1]
    bad = tmp_path / "bad.toml"
    bad.write_text("[agent]\nmod = 1\n")
    for words in ("once", "run", "status", "history", "explain 1", "rollback", "resume"):
        wrong = cli(*words.split(), "--config", str(bad))
        assert wrong.returncode == 2
        assert wrong.stderr == f"sar-agent: {bad}: agent.mod: no such key; did you mean mode?\n"
