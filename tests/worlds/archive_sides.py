"""Two machines' folders, without OpenSM; what one sends is answered by the other's forced command,
in this process."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sar_agent.agent.history import History, Row
from sar_agent.config.model import Config
from sar_agent.errors import Unavailable
from sar_agent.formats.routes_file import encode
from sar_agent.services.archive.exchange import serve
from tests.worlds.routes_vectors import small_routes


def routes_image(generation: int) -> bytes:
    return encode(replace(small_routes(), generation=generation))


def row(at: float, generation: int) -> Row:
    return Row(at, "agent", "jobs_changed", "why", "installed", "", "sar", generation, 3, 0.1, 7)


class Side:
    """An agent's folders. Its OpenSM is `role`; `deaf`: nobody answers there."""

    def __init__(self, folder: Path) -> None:
        agent = {
            "state_dir": str(folder / "state"),
            "run_dir": str(folder / "run"),
            "peer": [str(folder)],
            "mode": "install",
        }
        self.config = Config.model_validate({"agent": agent}, strict=False)
        self.state, self.run = folder / "state", folder / "run"
        (self.state / "generations").mkdir(parents=True)
        self.run.mkdir()
        self.role, self.deaf = "standby", False
        self.history = History(self.state)

    def put(self, generation: int, at: float = 1000.0) -> None:
        """As an install does."""
        image = routes_image(generation)
        (self.state / f"generations/{generation}.sar").write_bytes(image)
        (self.run / "routes.sar").write_bytes(image)
        self.write_state(generation)
        self.history.add(row(at + generation, generation))

    def write_state(self, generation: int, engine: str = "sar") -> None:
        state = {
            "generation": generation,
            "engine": engine,
            "jobs": [["n1", "n2"]],
            "fabric_digest": "00" * 32,
            "installed_at": 1.0,
            "identity": str(generation),
        }
        path = self.state / "state.new"
        path.write_text(json.dumps(state))
        path.replace(self.state / "state.json")

    def generation(self) -> int:
        return int(json.loads((self.state / "state.json").read_text())["generation"])

    def numbers(self) -> list[int]:
        return sorted(int(path.stem) for path in (self.state / "generations").glob("*.sar"))

    def answer(self, request: bytes) -> bytes:
        """What its forced command answers."""
        if self.deaf:
            raise Unavailable("ssh failed with exit code 255: No route to host")
        out = io.BytesIO()
        serve(self.config, io.BytesIO(request), out)
        return out.getvalue()

    def files(self) -> dict[str, bytes]:
        """All that is in its folders, but for locks and what was heard of the other."""
        paths = [*self.state.rglob("*"), *self.run.rglob("*")]
        return {
            str(path): path.read_bytes()
            for path in paths
            if path.is_file() and path.suffix != ".lock" and path.name != "peer.json"
        }


def two_sides(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Side, Side]:
    """`a` is the master, `b` the standby; each command of ssh reaches the other one."""
    a, b = Side(folder / "a"), Side(folder / "b")
    a.role = "master"
    at = {str(folder / "a"): a, str(folder / "b"): b}

    def role_of(config: Config) -> str:
        return at[config.agent.peer[0]].role

    def run(command: list[str], *, stdin: Any, **_: Any) -> bytes:
        [other] = [side for name, side in at.items() if name != command[0]]
        return other.answer(stdin.read())

    for room in ("take", "exchange", "sender"):
        monkeypatch.setattr(f"sar_agent.services.archive.{room}.role_of", role_of)
    monkeypatch.setattr("sar_agent.services.archive.exchange.run_program_bytes", run)
    return a, b
