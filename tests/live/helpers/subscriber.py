"""A fake of libsar_migrate, in a process of its own: it subscribes, obeys and acknowledges.

It is none: it has no queue pairs, hears no notices, and learns the phase from the door alone, which
it asks every `--every` seconds. What it does, and when, it writes to `--log`, a line of JSON each.
`python -m tests.live.helpers.subscriber --door PATH --munge SOCKET --job 1 --log FILE`
"""

from __future__ import annotations

import argparse
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.live.helpers.munged import Encoder, message, tell

RANK = {"unpath": 1, "install": 2, "repath": 3, "idle": 4}


class Fake:
    """`deaf` never leaves offset 0 when told to, but renews its lease."""

    def __init__(self, door: Path, munge: Path, job: str, log: Path, deaf: bool) -> None:
        self.door, self.encode, self.job, self.log = door, Encoder(munge), job, log
        self.deaf = deaf
        self.name, self.offset = os.urandom(8).hex(), -1
        self.seen, self.lease_end, self.lease = (0, 0), 0.0, 1.0

    def say(self, event: str, **more: Any) -> dict[str, Any]:
        payload = message(event, self.job, subscriber=self.name, user=0, **more)
        return tell(self.door, self.encode(payload))

    def once(self) -> None:
        sent = time.monotonic()
        try:
            answer = self.say("subscribe", offset=max(self.offset, 0), update=self.seen[0])
        except (OSError, ValueError):
            answer = {"ok": False, "error": "nobody answers"}
        if not answer["ok"]:
            if self.offset == 0 and sent > self.lease_end - self.lease / 3:
                self.move(1, "fenced")
            return
        self.lease = answer["lease"]
        self.lease_end = sent + self.lease
        phase, update = answer["phase"], answer["update"]
        if (update, RANK[phase]) < self.seen:
            return
        self.seen = (update, RANK[phase])
        if phase in ("unpath", "install") and not self.deaf:
            self.move(1, phase)
            if phase == "unpath":
                self.say("ack", phase="unpath", update=update, offset=1)
        elif phase in ("repath", "idle"):
            self.move(0, phase)
            if phase == "repath":
                self.say("ack", phase="repath", update=update, offset=0)

    def move(self, offset: int, why: str) -> None:
        if offset != self.offset:
            self.offset = offset
            row = {"at": time.time(), "offset": offset, "why": why, "update": self.seen[0]}
            with self.log.open("a") as log:
                log.write(json.dumps(row) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("door", "munge", "log"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--job", required=True)
    parser.add_argument("--every", type=float, default=0.05)
    parser.add_argument("--deaf", action="store_true")
    given = parser.parse_args()
    fake = Fake(given.door, given.munge, given.job, given.log, given.deaf)
    while True:
        with suppress(OSError, ValueError):  # the agent is away
            fake.once()
        time.sleep(given.every)


if __name__ == "__main__":
    main()
