"""The plugin's choice of routes in one sweep after another (opensm_bridge/tests/sweeps_run.c)."""

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
    why: str = ""
    entries: int = 0
    later: int = 0
    dropping: bool = False
    unrouted: int = 0
    follows: bool = False
    """The plugin requests another routing once packets of older tables are gone."""
    unconfirmed: int = 0
    """Switches; OpenSM itself sends again."""
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
        if chosen.how == "refused":
            chosen.why = " ".join(words[1:])
        else:
            entries, later, dropping, unrouted, follows, unconfirmed = map(int, words[1:])
            chosen.follows, chosen.unconfirmed = bool(follows), unconfirmed
            chosen.entries, chosen.later = entries, later
            chosen.dropping, chosen.unrouted = bool(dropping), unrouted
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
