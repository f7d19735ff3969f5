"""A five-phase update on the testbed of sar-2016, recorded from a real OpenSM over ibsim.

The testbed has two switches with two cables between them, and two hosts at each. A run takes a
minute and needs OpenSM, so it is recorded: `python -m tests.bench.record_five_phase` writes it
again. The record has the events of the agent and of the ranks (libs/migrate/PROTOCOL.md), the
blocks of tables that OpenSM had confirmed, and the tables of both LID offsets before and after.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from sar_agent.fabric import Fabric

TESTBED = "hyperx:2,hosts=2,cables=2"
RECORD = Path(__file__).parent / "recorded" / "testbed.json"


@dataclass(frozen=True)
class RecordedUpdate:
    """Seconds count from the beginning of the update."""

    ranks: int
    seconds: dict[str, float]
    """Phase → seconds, as the agent reports them."""
    events: list[dict[str, Any]]
    blocks: list[tuple[float, int, int]]
    """When the plugin was first seen to report so many confirmed blocks and this generation."""
    tables: dict[str, list[list[list[int]]]]
    """`before` and `after`: offset → switch → destination → egress port."""

    def times(self, party: str, event: str, **fields: Any) -> list[float]:
        """When a party did something, in order."""
        wanted = {"party": party, "event": event, **fields}
        return [float(e["at"]) for e in self.events if wanted.items() <= e.items()]

    def changing(self) -> tuple[float, float]:
        """When blocks were first seen to change, and when the tables before were last seen in
        force: tables changed between the two."""
        _, blocks, generation = self.blocks[0]
        first = next(at for at, count, _ in self.blocks if count != blocks)
        new = next(at for at, _, number in self.blocks if number != generation)
        return first, max(first, new)


@cache
def recorded_update() -> RecordedUpdate:
    """The record in this package."""
    record = json.loads(RECORD.read_text())
    return RecordedUpdate(
        record["ranks"],
        record["seconds"],
        record["events"],
        [(at, count, generation) for at, count, generation in record["blocks"]],
        record["tables"],
    )


def path_channels(
    fabric: Fabric, table: Sequence[Sequence[int]], source: int, destination: int
) -> list[int]:
    """The channels of a host's path under one offset's table."""
    at, found = int(fabric.terminal_switch[source]), list[int]()
    while at != fabric.terminal_switch[destination]:
        port = table[at][destination]
        hits = np.flatnonzero((fabric.channel_source == at) & (fabric.channel_port == port))
        if len(hits) != 1 or len(found) > fabric.switches:
            raise ValueError(f"no path from terminal {source} to {destination}")
        found.append(int(hits[0]))
        at = int(fabric.channel_target[hits[0]])
    return found
