"""The plugin's engine and events in one sweep after another (opensm_bridge/tests/sweeps_run.c)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sar_agent.formats.routes_file import RoutesFile, write_routes_file
from tests.worlds.judge import Fabric, Table
from tests.worlds.repair_steps import World


@dataclass
class Chosen:
    """What the plugin puts in force."""

    how: str
    """"kept", "repaired" or "refused"."""
    error: str = ""
    """`last_error`, as in the plugin's status."""
    entries: int = 0
    repairs: int = 0
    drops: bool = False
    """`repair_drops` of the status: packets of some hosts are dropped."""
    generation: int = 0
    put_off: int = 0
    """LIDs whose entries wait."""
    tables: dict[int, Table] = field(default_factory=dict)


class SweepsProgram:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.log: list[str] = []

    def _send(self, lines: Iterable[str]) -> None:
        assert self.process.stdin is not None
        text = "".join(f"{line}\n" for line in lines)
        self.log.append(text)
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            _, errors = self.process.communicate()
            raise AssertionError(errors)
        return line.strip()

    def aged(self) -> None:
        self._send(["aged"])

    def restart(self) -> None:
        self._send(["restart"])

    def lost(self) -> None:
        """Another subnet manager is master for a while."""
        self._send(["lost"])

    def has(self, tables: Mapping[int, Table]) -> None:
        """That one has set these entries."""
        self._send(f"has {s:x} {lid} {p}" for s, row in tables.items() for lid, p in row.items())

    def answer(self, path: Path) -> None:
        """In the next sweep the agent loads this file, if the plugin asks it."""
        self._send([f"answer {path}"])

    def copied(self, path: Path) -> None:
        """In the next sweep the agent puts this file in the place of the kept one, if it is
        asked, and has no routes."""
        self._send([f"copied {path}"])

    def follow(self) -> float | None:
        """Time passes until the plugin asks for a routing; seconds, None where it does not."""
        self._send(["follow"])
        words = self._line().split()
        return float(words[1]) if words[0] == "asked" else None

    def sweep(
        self,
        world: World,
        live: Fabric,
        silent: Iterable[int] = (),
        other: Mapping[int, Table] | None = None,
    ) -> Chosen:
        self._send(
            [
                *(f"switch {s:x} {p} {world.lid[s]}" for s, p in live.switches.items()),
                *(
                    f"cable {a[0]:x} {a[1]} {b[0]:x} {b[1]}"
                    for a, b in live.cables.items()
                    if a < b
                ),
                *(
                    f"host {h:x} {lids.start} {len(lids)} {s:x} {p}"
                    for h, (lids, (s, p)) in live.hosts.items()
                ),
                *(f"silent {s:x}" for s in silent),
                *(
                    f"other {s:x} {lid} {port}"
                    for s, table in (other or {}).items()
                    for lid, port in table.items()
                ),
                f"go {world.lmc}",
            ]
        )
        words, chosen = self._line().split(), Chosen("")
        chosen.how = words[0]
        if chosen.how != "refused":
            numbers = [int(word) for word in words[1:]]
            chosen.entries, chosen.repairs, drops, chosen.put_off, chosen.generation = numbers
            chosen.drops = bool(drops)
        chosen.error = self._line().removeprefix("error").strip()
        while (line := self._line()) != ".":
            _, guid, *entries_of = line.split()
            pairs = (entry.split(":") for entry in entries_of)
            chosen.tables[int(guid, 16)] = {int(lid): int(port) for lid, port in pairs}
        return chosen


@contextmanager
def sweeps(plan: RoutesFile, folder: Path, program: Path) -> Iterator[SweepsProgram]:
    """The program with `plan` in force."""
    write_routes_file(folder / "judged.sar", plan)
    process = subprocess.Popen(
        [program, folder / "judged.sar"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield SweepsProgram(process)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0 and not errors, errors
    finally:
        process.kill()
        process.wait()
