"""Subscribers of the five-phase update: `sar-migrate-demo`, whose queue pairs are a model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sar_lab.live.process import wait_for
from tests.worlds.live.built import built


class Subscriber:
    """One process, as a context manager that ends it; `trace` has its JSON lines."""

    def __init__(
        self,
        folder: Path,
        agent: Path | str,
        munge: Path,
        *words: str,
        env: Mapping[str, str] | None = None,
        program: str = "sar-migrate-demo",
        name: str = "subscriber",
        job: int = 7,
    ) -> None:
        self.trace = folder / f"{name}.jsonl"
        command = [
            str(built("libs/migrate", program)),
            f"agent={agent}",
            f"munge={munge}",
            f"job={job}",
        ]
        self.process = subprocess.Popen(
            [*command, f"trace={self.trace}", *words],
            env=dict(env or os.environ),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def lines(self) -> list[dict[str, Any]]:
        if not self.trace.exists():
            return []
        whole = self.trace.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def events(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        wanted = fields | {"event": event}
        return [one for one in self.lines() if wanted.items() <= one.items()]

    def wait(self, event: str, seconds: float = 20, count: int = 1, **fields: Any) -> None:
        wait_for(
            lambda: len(self.events(event, **fields)) >= count,
            seconds,
            f"{event} {fields} in {self.trace.name}",
            alive=lambda: self.process.poll() is None,
            last_words=lambda: str(self.end()),
        )

    def end(self, seconds: float = 10) -> tuple[int, str]:
        """Ends the process; returns its exit code and its error output."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        said, _ = self.process.communicate(timeout=seconds)
        complaints = [line for line in said.splitlines() if not line.startswith("{")]
        return self.process.returncode, "\n".join(complaints)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def __enter__(self) -> Subscriber:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.kill()
