"""A site that hands out routing keys, without daemons."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from sar_agent.events.authority import Authority, KnownJob
from sar_agent.events.message import Event
from sar_agent.fabric.ibsim_net import write_ibsim_net
from sar_agent.fabric.spec import load_fabric
from sar_agent.services.keys.requests import KeyRequests
from tests.worlds.agent_world import World
from tests.worlds.fake_opensm import job
from tests.worlds.live.listening import with_lids

ROOT, ALICE, BOB = 0, 1001, 1002


TORUS_HOSTS = ("n001", "n005", "n009", "n013")


JOBS = (
    job("1", *TORUS_HOSTS)._replace(uid=ALICE),
    job("2", "n002", "n006", "n010", "n014")._replace(uid=BOB),
)


class Site(World):
    """With LIDs to spare, and a desk that the test stands at."""

    def __init__(self, folder: Path, lmc: int = 3, **agent: Any) -> None:
        self.lmc = lmc
        self.now = 0.0
        super().__init__(folder, **agent)
        self.bridge.fabric = self.fabric
        self.source.records = JOBS

    def restart(self, topology: str = "") -> Any:
        fabric = with_lids(load_fabric("xgft:2;4,4;1,2"), self.lmc)
        if not (self.folder / "cut").exists():
            write_ibsim_net(fabric, self.net)
        agent = super().restart(topology)
        self.authority = Authority(frozenset({ROOT}))
        agent.keys.pool.requests = self.desk = KeyRequests(self.authority, clock=lambda: self.now)
        agent.keys.clock = lambda: self.now
        agent.keys.pool.report()
        return agent

    def cut(self, spine: int = 0) -> None:
        super().cut(spine)
        (self.folder / "cut").touch()

    def pass_(self) -> Any:
        report = self.once()
        self.know()
        return report

    def know(self) -> None:
        self.authority.known = {
            number: KnownJob(one.uid, one.traffic)
            for one in self.agent.observer.running()
            for number in one.numbers
        }

    def say(self, event: str, uid: int = ALICE, **keys: Any) -> dict[str, Any]:
        given = {"v": 1, "event": event, "job": "1", "id": os.urandom(8).hex()} | keys
        model = KeyRequests.models.get(event, Event)
        message = model.model_validate_json(json.dumps(given))
        if isinstance(message, Event):
            return dict(self.desk.of_job(message, uid))
        return dict(self.desk.handle(message, uid))

    def ask(self, uid: int = ALICE, phase: str = "x", **keys: Any) -> dict[str, Any]:
        """Until there is an answer."""
        keys = {"traffic": "ring"} | keys
        first = self.say("key", uid, phase=phase, **keys)
        if first.get("state") != "waiting":
            return first
        self.agent.serve_keys()
        return self.say("key", uid, phase=phase, **keys)

    def tables(self) -> np.ndarray:
        assert self.bridge.tables is not None
        return self.bridge.tables.forwarding.copy()

    def changed(self, before: np.ndarray) -> list[int]:
        """LID offsets whose tables are others."""
        after = self.tables()
        return [o for o in range(len(after)) if not np.array_equal(before[o], after[o])]
