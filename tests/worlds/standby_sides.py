"""Two agents' folders, without OpenSM, and the connection between them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sar_agent.agent.history import Row
from sar_agent.config.model import Config
from sar_agent.formats.routes_file import encode
from sar_agent.install.subnet_manager import SmStatus
from sar_agent.standby.peer_link import PeerLink
from sar_agent.standby.peer_server import PeerServer
from sar_agent.standby.terms import TermRecord
from sar_lab.live.process import free_port
from tests.worlds.routes_vectors import small_routes


def routes_image(generation: int) -> bytes:
    return encode(replace(small_routes(), generation=generation))


def row(at: float, generation: int) -> Row:
    return Row(at, "agent", "jobs_changed", "why", "installed", "", "sar", generation, 3, 0.1, 7)


class Side:
    """An agent's folders, and its end of the link. Its OpenSM is `role`."""

    def __init__(self, folder: Path, secret: Path, listen: int, peer: int) -> None:
        folder.mkdir()
        self.config = Config.model_validate(
            {
                "agent": {"state_dir": str(folder / "state"), "run_dir": str(folder / "run")},
                "standby": {
                    "peer": f"127.0.0.1:{peer}",
                    "listen": f"127.0.0.1:{listen}",
                    "certificate": str(secret),
                },
            },
            strict=False,
        )
        self.state, self.run = folder / "state", folder / "run"
        (self.state / "generations").mkdir(parents=True)
        self.run.mkdir()
        self.role, self.installs, self.highest = "standby", False, 0
        self.link = PeerLink(self.config, lambda: self.installs, self.status)
        self.server = PeerServer(self.link)
        self.server.start()

    def status(self) -> SmStatus:
        return SmStatus(role=self.role, highest_generation=self.highest)

    def lead(self) -> TermRecord:
        """As when its OpenSM becomes the master."""
        self.role = "master"
        record = self.link.take_over()
        self.installs = True
        return record

    def follow(self) -> None:
        self.role, self.installs = "standby", False

    def put(self, generation: int) -> None:
        """As an install does."""
        image = routes_image(generation)
        (self.state / f"generations/{generation}.sar").write_bytes(image)
        (self.run / "routes.sar").write_bytes(image)
        self.write_state(generation)
        self.link.history.add(row(1000.0 + generation, generation))

    def write_state(self, generation: int) -> None:
        state = {
            "generation": generation,
            "engine": "sar",
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


@contextmanager
def two_sides(folder: Path, secret: Path) -> Iterator[tuple[Side, Side]]:
    """Both serve."""
    ports = free_port(), free_port()
    made = Side(folder / "a", secret, *ports), Side(folder / "b", secret, *ports[::-1])
    try:
        yield made
    finally:
        for side in made:
            side.server.stop()
            side.link.close()
