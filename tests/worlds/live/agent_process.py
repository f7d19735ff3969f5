"""`sar-agent run` as a process of its own, and what it leaves in its folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from sar_agent.agent.history import History, Row
from sar_agent.agent.state import State
from sar_agent.opensm.plugin_client import PluginClient
from sar_lab.live.opensm import OpenSM
from tests.worlds.live.built import ROOT

CLI = [sys.executable, "-c", "from sar_agent.cli import main; main()"]
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


class AgentFolder:
    """The configuration, log, state and history of an agent beside the OpenSM `sm`."""

    folder: Path
    sm: OpenSM

    @property
    def bridge(self) -> PluginClient:
        return PluginClient(self.sm.socket_path)

    @property
    def state_dir(self) -> Path:
        return self.folder / "state"

    def log(self) -> str:
        return (self.folder / "agent.log").read_text()

    def state(self) -> State | None:
        path = self.state_dir / "state.json"
        return State.model_validate_json(path.read_bytes()) if path.exists() else None

    def rows(self) -> list[Row]:
        """The history, newest first."""
        return History(self.state_dir).last(1000)


def write_config(folder: Path, sections: Mapping[str, Mapping[str, Any]]) -> Path:
    """`sar-agent.toml` in the folder."""
    lines = []
    for name, keys in sections.items():
        lines.append(f"[{name}]")
        for key, value in keys.items():
            text = json.dumps(value)
            if isinstance(value, dict):
                inner = ", ".join(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in value.items())
                text = f"{{ {inner} }}"
            lines.append(f"{key} = {text}")
    path = folder / "sar-agent.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def run_agent(config: Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """`sar-agent run`; its log is `agent.log` beside the configuration."""
    with config.with_name("agent.log").open("ab") as log:
        return subprocess.Popen(
            [*CLI, "run", "--config", str(config)],
            env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
            cwd=config.parent,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def scrape(port: int) -> dict[tuple[str, ...], float]:
    """Metrics: (name, label values …) to value."""
    text = _open(f"http://127.0.0.1:{port}/metrics", timeout=20).read().decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
