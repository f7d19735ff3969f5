"""The kernel of the packet simulator.

Time is counted in ticks, the time of a flit on the fastest link. All that happens to a link ends at
most one segment's time later, so events are in a wheel of as many buckets: O(1) each. Each segment
in a buffer has at most one event, its arrival and then the moment at which it may go on, and a link
has one, the end of the segment that it sends. Within a tick, events happen in the order in which
they were foreseen, so a run has one result.

When the first flit of a segment is in at a switch, the segment takes the output that is `chosen`
for its message, or else that of its group for which fewest segments wait there, the one on the link
included. Outputs alike take turns, by a pointer for each switch. So a choice needs only what a
switch knows of itself. Per flow, the first segment of a message chooses and all others follow it;
on a fixed path, everything is chosen beforehand.

One function, because a call with so many arrays costs more than what it does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric.model import I64, U32, Bool
from sar_agent.util.kernels import kernel, kernel_part

NONE = np.uint32(0xFFFFFFFF)
BEFORE = np.int64(-1)
"""A moment that does not come."""


class SwitchPorts(NamedTuple):
    """The L = C + 2 T links of `flow_links.py` as ports of switches."""

    end: U32
    """uint32[L]: the switch at the end of a link; `NONE` at a host."""
    into: U32
    """uint32[L]: the place of the link among the inputs of that switch."""
    out: U32
    """uint32[L]: the place of the link among the outputs of the switch that it leaves."""
    degree: U32
    """uint32[S]: inputs of each switch, as many as outputs."""
    first: U32
    """uint32[S + 1]: queues of a switch, input by input, output by output."""
    leaf: U32
    """uint32[T]"""


class PortGroups(NamedTuple):
    """The outputs that segments to a host may take at a switch."""

    start: U32
    """uint32[S T + 1] into `channel`: entry s T + d."""
    channel: U32
    """uint32[E]"""


class QueuedFlows(NamedTuple):
    """F messages, as `Flows`, in segments and ticks."""

    source: U32
    destination: U32
    segments: I64
    last_flits: I64
    step: U32
    last: Bool
    wait: I64


class PacketSteps(NamedTuple):
    """P steps of F messages."""

    step: U32
    """uint32[F], ascending."""
    last: Bool
    """bool[P]: no step waits for this one."""
    wait: I64
    """int64[P]: ticks from the end of the previous step, or from the beginning."""
    first: I64
    """int64[P + 1]: the first message of each step."""
    running: I64
    """int64[P]: messages that have begun and not ended."""
    starts: I64
    """int64[P]: the tick at which a step begins, or `BEFORE`."""


@kernel_part
def steps_of(step: U32, last: Bool, wait: I64) -> tuple[PacketSteps, np.int64]:  # pragma: no cover
    """The steps before anything has begun, and the first tick at which one does."""
    first = np.zeros(len(wait) + 1, np.int64)
    for i in range(len(step)):
        first[step[i] + np.uint32(1)] = i + 1
    running = np.zeros(len(wait), np.int64)
    starts = np.full(len(wait), BEFORE, np.int64)
    next_start = BEFORE
    for s in range(len(wait)):
        if s == 0 or last[s - 1]:
            starts[s] = wait[s]
            if next_start < 0 or wait[s] < next_start:
                next_start = wait[s]
    return PacketSteps(step, last, wait, first, running, starts), next_start


@kernel_part
def message_ended(
    steps: PacketSteps, f: np.uint32, now: np.int64, next_start: np.int64
) -> np.int64:  # pragma: no cover
    """The next tick at which a step begins, now that message f has ended."""
    s = steps.step[f]
    steps.running[s] -= 1
    if steps.running[s] or steps.last[s] or s + 1 >= len(steps.wait):
        return next_start
    at = now + max(steps.wait[s + 1], 1)
    steps.starts[s + 1] = at
    return at if next_start < 0 or at < next_start else next_start


@kernel_part
def wheel_size(slowest: np.int64, whole: int, hop: int) -> np.int64:  # pragma: no cover
    """Buckets, a power of two, for all events until a segment of `whole` flits is over the slowest
    link and a switch."""
    size = np.int64(2)
    while size < slowest * (whole + 2) + hop + 2:
        size *= 2
    return size


@kernel_part
def append(
    head: U32, tail: U32, after: U32, queue: np.int64, x: np.uint32
) -> None:  # pragma: no cover
    """Puts `x` at the end of a queue: `after` leads from `head` to `tail`."""
    if head[queue] == NONE:
        head[queue] = x
    else:
        after[tail[queue]] = x
    tail[queue] = x
    after[x] = NONE


@kernel
def run_packets(
    ports: SwitchPorts,
    groups: PortGroups,
    flows: QueuedFlows,
    per_flit: I64,
    whole: int,
    room: int,
    hop: int,
    chosen: U32,
    per_packet: bool,
    begin: I64,
    end: I64,
    overtaken: I64,
    waited: I64,
) -> np.int64:  # pragma: no cover
    """Fills `begin` int64[P], `end` int64[F] (ticks, -1 where it does not happen), `overtaken`
    int64[F], the segments that arrive after a later one of their message, and `waited` int64[L],
    the ticks that segments in switches waited for each link; returns the number of segments times
    links, or -1 where a switch has no port for a segment.

    `per_flit` int64[L]: ticks of a flit; `whole`: flits of all segments of a message but the last;
    `room`: segments of a buffer; `hop`: ticks of a switch; `chosen` uint32[F, H]: the channel that
    a message takes at each switch of its way, `NONE` where it is still to be chosen, unless
    `per_packet`; H: switches that a segment may pass, at most."""
    one = np.uint32(1)
    source, destination, segments, last_flits, step, last, wait = flows
    number, terminals = np.uint32(len(per_flit)), np.uint32(len(ports.leaf))
    channels = number - np.uint32(2) * terminals
    queues = ports.first[len(ports.degree)]
    count = np.int64(queues) + len(segments)
    slots = (channels + terminals) * np.uint32(room)
    # Segments in buffers.
    flow_in = np.empty(slots, np.uint32)
    place_in = np.empty(slots, np.int64)  # number of the segment in its message
    link_in = np.empty(slots, np.uint32)
    out_in = np.empty(slots, np.uint32)
    hops_in = np.empty(slots, np.uint32)
    whole_at = np.empty(slots, np.int64)  # when its last flit is in
    arrived = np.empty(slots, np.bool_)
    since = np.empty(slots, np.int64)  # when it could go on
    following = np.empty(slots, np.uint32)
    spare = np.arange(np.int64(slots)).astype(np.uint32)
    spares = slots
    head = np.full(queues, NONE, np.uint32)
    tail = np.full(queues, NONE, np.uint32)
    # Queues that a link may serve, in turns.
    turn = np.full(count, NONE, np.uint32)
    turn_head = np.full(number, NONE, np.uint32)
    turn_tail = np.full(number, NONE, np.uint32)
    credit = np.full(number, room, np.int64)
    depth = np.zeros(number, np.int64)  # segments that chose a link and are not beyond it
    busy = np.zeros(number, np.bool_)
    freed = np.full(number, NONE, np.uint32)
    ends = np.full(number, NONE, np.uint32)
    pointer = np.zeros(len(ports.degree), np.uint32)
    sent = np.zeros(len(segments), np.int64)
    arriving = segments.copy()
    furthest = np.full(len(segments), BEFORE, np.int64)
    steps, next_start = steps_of(step, last, wait)
    first_flow, running, starts = steps.first, steps.running, steps.starts
    size = wheel_size(per_flit.max(), whole, hop)
    mask = size - 1
    # Events: x < number is the end of a link's segment, others concern slot x - number.
    bucket = np.full(size, NONE, np.uint32)
    bucket_tail = np.full(size, NONE, np.uint32)
    later = np.full(np.int64(number) + slots, NONE, np.uint32)
    events = np.int64(0)
    todo = np.empty(len(segments) + 4, np.uint32)
    now = np.int64(0)
    hops = np.int64(0)
    while events or next_start >= 0:
        if not events:
            now = next_start
        while now != next_start and bucket[now & mask] == NONE:
            now += 1
        tries = 0
        if now == next_start:
            next_start = BEFORE
            for s in range(len(starts)):
                if starts[s] == now:
                    starts[s] = BEFORE
                    begin[s] = now
                    running[s] = first_flow[s + 1] - first_flow[s]
                    for i in range(first_flow[s], first_flow[s + 1]):
                        o = channels + source[i]
                        append(turn_head, turn_tail, turn, np.int64(o), np.uint32(queues + i))
                        todo[tries] = o
                        tries += 1
                elif starts[s] >= 0 and (next_start < 0 or starts[s] < next_start):
                    next_start = starts[s]
        while bucket[now & mask] != NONE or tries:
            if not tries:
                b = now & mask
                x = bucket[b]
                bucket[b] = later[x]
                events -= 1
                if x < number:  # a segment has left, so its place in the buffer is free
                    busy[x] = False
                    if x < channels or x >= channels + terminals:
                        depth[x] -= 1
                    if freed[x] != NONE:
                        credit[freed[x]] += 1
                        todo[tries] = freed[x]
                        tries += 1
                    f = ends[x]
                    if f != NONE:
                        end[f] = now
                        next_start = message_ended(steps, f, now, next_start)
                    todo[tries] = x
                    tries += 1
                    continue
                slot = x - number
                f, came = flow_in[slot], link_in[slot]
                v = ports.end[came]
                d = destination[f]
                if not arrived[slot]:  # the first flit is in: choose
                    arrived[slot] = True
                    o = channels + terminals + d
                    if ports.leaf[d] != v:
                        known = NONE if per_packet else chosen[f, hops_in[slot]]
                        if known == NONE:
                            entry = v * terminals + d
                            low, high = groups.start[entry], groups.start[entry + one]
                            ways = high - low
                            if ways == 0:
                                return np.int64(-1)
                            best = low + pointer[v] % ways
                            for k in range(one, ways):
                                e = low + (pointer[v] + np.uint32(k)) % ways
                                if depth[groups.channel[e]] < depth[groups.channel[best]]:
                                    best = e
                            pointer[v] = best - low + one
                            known = groups.channel[best]
                            if not per_packet:
                                chosen[f, hops_in[slot]] = known
                        o = known
                    out_in[slot] = o
                    depth[o] += 1
                    flits = last_flits[f] if place_in[slot] + 1 == segments[f] else np.int64(whole)
                    ready = whole_at[slot] - (flits - 1) * per_flit[o]
                    if ready > now:
                        append(bucket, bucket_tail, later, ready & mask, x)
                        events += 1
                        continue
                o = out_in[slot]
                q = ports.first[v] + ports.into[came] * ports.degree[v] + ports.out[o]
                since[slot] = now
                append(head, tail, following, q, slot)
                if head[q] != slot:
                    continue
                append(turn_head, turn_tail, turn, np.int64(o), q)
                todo[tries] = o
                tries += 1
                continue
            tries -= 1
            o = todo[tries]
            q = turn_head[o]
            if busy[o] or q == NONE:
                continue
            final = o >= channels + terminals
            if not final and credit[o] == 0:
                continue
            # The segment starts.
            hops += 1
            turn_head[o] = turn[q]
            busy[o] = True
            ends[o] = NONE
            passed = np.uint32(0)
            if q >= queues:
                f = np.uint32(q - queues)
                place = sent[f]
                sent[f] += 1
                freed[o] = NONE
                again = sent[f] < segments[f]
            else:
                slot = head[q]
                f, place = flow_in[slot], place_in[slot]
                passed = hops_in[slot] + one
                freed[o] = link_in[slot]
                waited[o] += now - since[slot]
                head[q] = following[slot]
                spare[spares] = slot
                spares += one
                again = head[q] != NONE
            flits = last_flits[f] if place + 1 == segments[f] else np.int64(whole)
            takes = flits * per_flit[o]
            append(bucket, bucket_tail, later, (now + takes) & mask, o)
            events += 1
            if again:
                append(turn_head, turn_tail, turn, np.int64(o), q)
            if final:
                arriving[f] -= 1
                if place < furthest[f]:
                    overtaken[f] += 1
                furthest[f] = max(furthest[f], place)
                if arriving[f] == 0:
                    ends[o] = f
                continue
            if passed >= chosen.shape[1]:
                return np.int64(-1)
            credit[o] -= 1
            spares -= one
            slot = spare[spares]
            flow_in[slot], place_in[slot], link_in[slot], hops_in[slot] = f, place, o, passed
            whole_at[slot] = now + hop + takes
            arrived[slot] = False
            append(bucket, bucket_tail, later, (now + hop + per_flit[o]) & mask, number + slot)
            events += 1
        now += 1
    return hops
