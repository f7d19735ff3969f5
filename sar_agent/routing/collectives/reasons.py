"""Why an entry is an exception, and what a change of tables moved, from finished tables alone."""

from __future__ import annotations

import numpy as np

from sar_agent.demand.collectives import RING, messages_of
from sar_agent.fabric import Fabric
from sar_agent.fabric.model import I32, U8, Bool
from sar_agent.jobs import JobMix
from sar_agent.routing.graph.next_hops import channels_along


def reason_of(
    fabric: Fabric, mix: JobMix, template: U8, egress: U8, destination: int, switch: int
) -> str:
    """What the entry of a switch for a terminal keeps apart, in one sentence: messages of rings
    that lead over it, on the way that the template has from there, would meet those that are named.
    Says that it serves other collectives where they would meet none. `template`, `egress`
    uint8[T + S, S]."""
    host = fabric.terminal_host[destination]
    entry = f"entry of {fabric.switch_name[switch]} for {host}"
    messages = messages_of(fabric, mix, RING)
    job = np.repeat(np.arange(len(mix.jobs)), np.diff(messages.phase[messages.job]))
    paths, _ = channels_along(fabric, egress, messages.source, messages.destination)
    switches = np.where(paths >= 0, fabric.channel_source[paths], -1)
    mine = (messages.destination == destination) & (switches == switch).any(axis=1)
    if not mine.any():
        return f"{entry}: serves collectives other than rings"
    usual = egress.copy()
    usual[destination, switch] = template[destination, switch]
    to = messages.source[mine], messages.destination[mine]
    then, _ = channels_along(fabric, usual, *to)
    met = np.isin(paths, then[then >= 0]).any(axis=1) & ~mine
    met &= ~_met_now(paths, paths[mine])
    owner = mix.jobs[int(job[mine][0])].id
    others = sorted({mix.jobs[j].id for j in job[met].tolist()})
    if not others:
        return f"{entry}: serves collectives other than rings"
    if others == [owner]:
        return f"{entry}: keeps messages of the ring of job {owner} apart"
    names = ", ".join(f"{name}'s" for name in others if name != owner)
    return f"{entry}: keeps the ring of job {owner} apart from job {names}"


def _met_now(paths: I32, own: I32) -> Bool:
    """bool[M]: the messages that share a channel with `own`."""
    return np.asarray(np.isin(paths, own[own >= 0]).any(axis=1))


def ring_entries_moved(fabric: Fabric, before: JobMix, after: JobMix, old: U8, new: U8) -> int:
    """How many entries over which rings of jobs send that run before and after differ."""
    running = {job.key for job in after.jobs}
    kept = JobMix(tuple(job for job in before.jobs if job.key in running))
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
