"""The cabling report: what is odd or has counted errors, and the jobs that each thing hurts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sar_agent.counters.port_errors import ERRORS
from sar_agent.counters.port_errors import words as error_words
from sar_agent.fabric import Fabric
from sar_agent.fabric.cable_names import channel_end, host_cable_ends
from sar_agent.fabric.hostnames import Kind
from sar_agent.fabric.odd_cables import odd_cables
from sar_agent.fabric.unlike import Odd
from sar_agent.quality import measure
from sar_agent.reports.places import NOWHERE, Places
from sar_agent.reports.site_dumps import SiteDumps
from sar_agent.reports.wording import some
from sar_agent.util.plural import plural

JOBS_SHOWN = 5


@dataclass(frozen=True)
class CableFinding:
    """One thing to look at."""

    kind: str
    """`odd` (unlike most of its like) or `errors`."""
    sentence: str
    load: float
    """The largest predicted load of the cables that it concerns; 0 for cables of hosts."""
    counted: float | None
    """The largest share of its speed that one of them carried; None where not known."""
    jobs: tuple[str, ...]
    """Jobs with routes over these cables, or on these hosts."""

    def words(self) -> str:
        """A line."""
        known = []
        if self.jobs:
            known.append(f"job{'s' * (len(self.jobs) > 1)} {some(self.jobs, JOBS_SHOWN)}")
        if self.load:
            known.append(f"predicted load {self.load:.2f}")
        if self.counted is not None:
            known.append(f"carried {self.counted:.1%}")
        return self.sentence + (f" ({', '.join(known)})" if known else "")


@dataclass(frozen=True)
class CableReport:
    """All findings: odd ones first, then errors, the worst first."""

    findings: tuple[CableFinding, ...]
    cables: int
    """Live cables, those of hosts too."""
    with_errors: int | None
    """Cables of which a port has counted errors; None without counters."""
    repair: str
    """What slow cables cost now, by the same routes; empty where there are none."""
    changes: tuple[str, ...] | None
    """What changed since an earlier dump; None without one."""
    notes: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)

    def words(self, shown: int) -> str:
        """For people: at most `shown` findings of each kind, and changes."""
        lines = [
            f"{plural(self.cables, 'cable')}"
            + ("" if any(f.kind == "odd" for f in self.findings) else ", none unlike its like")
            + ("" if self.with_errors is None else f", {self.with_errors} with errors")
        ]
        for kind, head in (("odd", "unlike their like"), ("errors", "errors counted")):
            lines += _section(head, [f.words() for f in self.findings if f.kind == kind], shown)
        if self.repair:
            lines.append(self.repair)
        if self.changes is not None:
            lines += _section("changed since", list(self.changes), shown) or [
                "nothing changed since"
            ]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def _section(head: str, lines: list[str], shown: int) -> list[str]:
    more = [f"  and {len(lines) - shown} more (--all)"] if len(lines) > shown else []
    return [f"{head}:", *(f"  {line}" for line in lines[:shown]), *more] if lines else []


def not_ignored(fabric: Fabric, odd: Iterable[Odd], ignored: Places) -> list[Odd]:
    """Those that concern more than what a site has looked at and found right. What lacks a cable is
    ignored with either of its switches, what several hosts share with all of them."""
    cables = ignored.cables_of(fabric)
    channels = {int(w) for c in cables.channels for w in (c, fabric.channel_reverse[c])}

    def left_out(each: Odd) -> bool:
        if each.switches:
            return not set(each.switches).isdisjoint(ignored.switches)
        if each.terminals:
            return set(each.terminals) <= set(cables.terminals)
        return not channels.isdisjoint(each.channels)

    return [each for each in odd if not left_out(each)]


def cable_report(
    dumps: SiteDumps, changes: tuple[str, ...] | None = None, ignored: Places = NOWHERE
) -> CableReport:
    """Findings on all live cables but those `ignored`. `changes`: of `cable_changes`, if there is
    an earlier dump."""
    fabric, odd = dumps.fabric, odd_cables(dumps.fabric)
    erring = _with_errors(dumps)
    found = [("odd", each) for each in not_ignored(fabric, odd.odd, ignored)]
    found += [("errors", each) for each in not_ignored(fabric, erring, ignored)]
    findings = [_finding(dumps, kind, each) for kind, each in found]
    fewer = len(odd.odd) + len(erring) - len(found)
    notes = dumps.errors.notes if dumps.errors else ()
    if fewer:
        notes += (f"{fewer} finding{'s are' if fewer > 1 else ' is'} left out, as you ask",)
    repair = ""
    if odd.slow and dumps.mix.jobs:
        now = float(dumps.traffic.load[fabric.channel_up].max(initial=0.0))
        then = measure(odd.repaired, dumps.mix, dumps.routes).load_max
        if then < now:
            repair = (
                f"with the {odd.slow} slow cable{'s' * (odd.slow > 1)} as fast as most, the "
                f"fullest link would carry {then:.2f} instead of {now:.2f} times its capacity"
            )
    return CableReport(
        tuple(findings),
        int(fabric.channel_up.sum()) // 2 + int(fabric.is_host_port.sum()),
        None if dumps.errors is None else len(erring),
        repair,
        changes,
        notes,
    )


def _with_errors(dumps: SiteDumps) -> list[Odd]:
    """Cables with errors: links that went down first."""
    fabric, found = dumps.fabric, list[tuple[tuple[int, ...], Odd]]()
    if dumps.errors is None:
        return []

    def add(
        ports: tuple[str, str], ends: Iterable[Mapping[str, int]], *where: tuple[int, ...]
    ) -> None:
        sides = [(port, counts) for port, counts in zip(ports, ends, strict=True) if counts]
        if sides:
            order = tuple(-sum(counts.get(e, 0) for _, counts in sides) for e in ERRORS)
            said = "; ".join(f"{error_words(counts)} at {port}" for port, counts in sides)
            found.append((order, Odd(f"{' – '.join(ports)}: {said}", *where)))

    for c in np.flatnonzero(
        fabric.channel_up & (fabric.channel_reverse > np.arange(fabric.channels))
    ):
        ways = (int(c), int(fabric.channel_reverse[c]))
        names = channel_end(fabric, ways[0]), channel_end(fabric, ways[1])
        add(names, map(dumps.channel_errors, ways), ways)
    for t in np.flatnonzero(fabric.terminal_up & (fabric.terminal_kind != Kind.IN_SWITCH)).tolist():
        add(host_cable_ends(fabric, t), dumps.terminal_errors(t)[::-1], (), (t,))
    return [each for _, each in sorted(found, key=lambda one: (one[0], one[1].sentence))]


def _finding(dumps: SiteDumps, kind: str, odd: Odd) -> CableFinding:
    both = {w for c in odd.channels for w in (c, int(dumps.fabric.channel_reverse[c]))}
    ways = np.array(sorted(both), np.int64)
    jobs = [job for c in ways for job in dumps.jobs_over(int(c))]
    names = [job.job for job in sorted(jobs, key=lambda job: (-job.routes, job.job))]
    names += [job.job for t in odd.terminals for job in dumps.jobs_on(t)]
    window, counted = dumps.window, None
    if window is not None and len(ways) and window.known[ways].any():
        counted = float(window.share[ways].max())
    load = float(dumps.traffic.load[ways].max(initial=0.0))
    return CableFinding(kind, odd.sentence, load, counted, tuple(dict.fromkeys(names)))
