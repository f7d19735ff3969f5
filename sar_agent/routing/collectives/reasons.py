"""Why an entry is an exception, and what a change of tables moved, from finished tables alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.demand.collectives import RING, messages_of
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, I64, U8, Bool
from sar_agent.jobs import JobMix
from sar_agent.routing.graph.next_hops import channels_along

OTHERS = "serves collectives other than rings"
FLOWS = 1 << 20
"""Paths that are followed at once: some 30 MB."""


class JobException(NamedTuple):
    """An entry over which a job sends, and which differs from the template's."""

    switch: int
    destination: int
    """A terminal."""
    port: int
    reason: str
    """In words: `keeps the ring of job 4711 apart from job 4802's`."""


def exceptions_of(
    fabric: Fabric, mix: JobMix, template: U8, egress: U8, parts: tuple[int, ...]
) -> list[JobException]:
    """The exceptions over which these jobs of the mix send, each with its reason; those for rings
    first, then by destination and switch. `template`, `egress` uint8[T + S, S].

    An entry keeps a ring apart if a message of a ring leads over it which, on the way that the
    template has from there, would meet messages that it does not meet now. O(exceptions · messages
    of all rings).
    """
    entries = _used_exceptions(fabric, mix, template, egress, parts)
    rings = _Rings.of(fabric, mix, egress)
    usual, found = egress.copy(), []
    for d, s in entries:
        usual[d, s] = template[d, s]
        reason = rings.reason(fabric, mix, usual, d, s)
        usual[d, s] = egress[d, s]
        found.append(JobException(s, d, int(egress[d, s]), reason))
    return sorted(found, key=lambda each: each.reason == OTHERS)


def _used_exceptions(
    fabric: Fabric, mix: JobMix, template: U8, egress: U8, parts: tuple[int, ...]
) -> list[tuple[int, int]]:
    """(destination, switch) of each exception on a path between terminals of one of the parts."""
    used = set[tuple[int, int]]()
    for part in parts:
        terminals = mix.jobs[part].terminals
        _, first = np.unique(fabric.terminal_switch[terminals], return_index=True)
        source, to = terminals[first], terminals[(egress[terminals] != template[terminals]).any(1)]
        for some in np.array_split(to, 1 + len(to) * len(source) // FLOWS):
            flows = np.repeat(source, len(some)), np.tile(some, len(source))
            paths, _ = channels_along(fabric, egress, *flows)
            flow, hop = np.nonzero(paths >= 0)
            d, s = flows[1][flow], fabric.channel_source[paths[flow, hop]]
            off = egress[d, s] != template[d, s]
            used.update(zip(d[off].tolist(), s[off].tolist(), strict=True))
    return sorted(used)


class _Rings(NamedTuple):
    """M messages of all rings, and where they go."""

    source: I32
    destination: I32
    job: I64
    """int64[M] into the mix."""
    phase: I64
    """int64[M]: messages of a job meet in the same phase; a ring that is not declared has one."""
    paths: I32
    """int32[M, hops]: channels, then -1."""
    switches: I32
    """int32[M, hops]: the switch before each channel, then -1."""

    @staticmethod
    def of(fabric: Fabric, mix: JobMix, egress: U8) -> _Rings:
        messages = messages_of(fabric, mix, RING)
        job = np.repeat(np.arange(len(mix.jobs)), np.diff(messages.phase[messages.job]))
        phase = np.repeat(np.arange(len(messages.phase) - 1), np.diff(messages.phase))
        paths, _ = channels_along(fabric, egress, messages.source, messages.destination)
        switches = np.where(paths >= 0, fabric.channel_source[paths], -1)
        return _Rings(messages.source, messages.destination, job, phase, paths, switches)

    def reason(self, fabric: Fabric, mix: JobMix, usual: U8, destination: int, switch: int) -> str:
        """Why the entry is no longer that of `usual`, which are else the tables in use."""
        to_it = np.flatnonzero(self.destination == destination)
        mine = to_it[(self.switches[to_it] == switch).any(axis=1)]
        if not len(mine):
            return OTHERS
        then, _ = channels_along(fabric, usual, self.source[mine], self.destination[mine])
        met = self._over(then) & ~self._over(self.paths[mine])
        met[mine] = False
        met &= ~np.isin(self.job, self.job[mine]) | np.isin(self.phase, self.phase[mine])
        owner = mix.jobs[int(self.job[mine[0]])].id
        others = sorted({mix.jobs[j].id for j in self.job[met].tolist()})
        if not others:
            return OTHERS
        if others == [owner]:
            return f"keeps messages of the ring of job {owner} apart"
        names = ", ".join(f"{name}'s" for name in others if name != owner)
        return f"keeps the ring of job {owner} apart from job {names}"

    def _over(self, channels: I32) -> Bool:
        """bool[M]: the messages over one of these channels."""
        return np.asarray(np.isin(self.paths, channels[channels >= 0]).any(axis=1))


def ring_entries_moved(fabric: Fabric, before: JobMix, after: JobMix, old: U8, new: U8) -> int:
    """How many entries over which rings of jobs send that run before and after differ. A job is
    known by its terminals; `old`, `new` uint8[T + S, S]."""
    running = {job.terminals.tobytes() for job in before.jobs}
    kept = JobMix(tuple(job for job in after.jobs if job.terminals.tobytes() in running))
    if not kept.jobs:
        return 0
    messages = messages_of(fabric, kept, RING)
    paths, _ = channels_along(fabric, old, messages.source, messages.destination)
    used = paths >= 0
    to = np.broadcast_to(messages.destination[:, None], paths.shape)[used]
    at = fabric.channel_source[paths[used]]
    pairs = np.unique(to.astype(np.int64) * fabric.switches + at)
    to, at = np.divmod(pairs, fabric.switches)
    return int(np.count_nonzero(old[to, at] != new[to, at]))
