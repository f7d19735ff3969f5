"""The kernel of the packet simulator.

Time is counted in ticks, the time of a flit on the fastest link. All that happens to a link ends at
most one segment's time later, so events are in a wheel of as many buckets: O(1) each. A link
has one event, the end of the segment that it sends; a queue has one, the moment at which its first
segment may go on. Within a tick, events happen in the order in which they were foreseen. So a run
has one result.

One function, because a call with so many arrays costs more than what it does. What happens once a
message or once a run is in `packet_steps.py`, for the kernel of adaptive routing, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sar_agent.fabric.model import I64, U32, Bool
from sar_agent.util.kernels import kernel, kernel_part
from sar_lab.research.packets.packet_steps import BEFORE, message_ended, steps_of, wheel_size

NONE = np.uint32(0xFFFFFFFF)


class PacketQueues(NamedTuple):
    """Where the segments of each flow wait: Q queues, the last F of them at the hosts."""

    start: U32
    """uint32[F + 1] into `link` and `queue`."""
    link: U32
    """uint32[E]: the links of each flow, one after the other."""
    queue: U32
    """uint32[E]: the queue before each of them."""
    out: U32
    """uint32[Q]: the link that serves each queue."""
    into: U32
    """uint32[Q]: the link in whose buffer the queue is, or `NONE` at a host."""


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
    queues: PacketQueues,
    per_flit: I64,
    segments: I64,
    last_flits: I64,
    whole: int,
    room: int,
    hop: int,
    step: U32,
    last: Bool,
    wait: I64,
    begin: I64,
    end: I64,
) -> np.int64:  # pragma: no cover
    """Fills `begin` int64[P] and `end` int64[F] with ticks, -1 where it does not happen; returns
    the number of segments times links.

    `per_flit` int64[L]: ticks of a flit; `segments` int64[F], the last one of each flow of
    `last_flits` int64[F] flits, all others of `whole`; `room`: segments of a buffer; `hop`: ticks
    of a switch. `step`, `last`, `wait` as in `Flows`, in ticks.
    """
    one = np.uint32(1)
    start, path, queue_of, out, into = queues
    number, count, waiting = np.uint32(len(per_flit)), len(out), len(out) - len(segments)
    # Segments in buffers: a list for each queue.
    slots = np.uint32(0)
    seen = np.zeros(number, np.bool_)
    for e in path:
        if not seen[e]:
            seen[e] = True
            slots += np.uint32(room)
    flow_in = np.empty(slots, np.uint32)
    entry_in = np.empty(slots, np.uint32)
    ready_at = np.empty(slots, np.int64)
    following = np.empty(slots, np.uint32)
    spare = np.arange(np.int64(slots)).astype(np.uint32)
    spares = slots
    head = np.full(count, NONE, np.uint32)
    tail = np.full(count, NONE, np.uint32)
    # Queues that a link may serve, in turns.
    turn = np.full(count, NONE, np.uint32)
    turn_head = np.full(number, NONE, np.uint32)
    turn_tail = np.full(number, NONE, np.uint32)
    credit = np.full(number, room, np.int64)
    done_at = np.full(number, BEFORE, np.int64)  # a link is free where this has passed
    busy = np.zeros(number, np.bool_)
    freed = np.full(number, NONE, np.uint32)  # the buffer that the segment on a link leaves
    ends = np.full(number, NONE, np.uint32)  # the flow whose last segment arrives
    # Per flow and step.
    left = segments.copy()
    arriving = segments.copy()
    steps, next_start = steps_of(step, last, wait)
    first_flow, running, starts = steps.first, steps.running, steps.starts
    # The wheel: event x < number is the end of link x's segment, others wake queue x - number.
    slowest = np.int64(1)
    for e in path:
        slowest = max(slowest, per_flit[e])
    size = wheel_size(slowest, whole, hop)
    mask = size - 1
    bucket = np.full(size, NONE, np.uint32)
    bucket_tail = np.full(size, NONE, np.uint32)
    later = np.full(np.int64(number) + count, NONE, np.uint32)
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
                        q = np.uint32(waiting + i)
                        o = out[q]
                        append(turn_head, turn_tail, turn, o, q)
                        todo[tries] = o
                        tries += 1
                elif starts[s] >= 0 and (next_start < 0 or starts[s] < next_start):
                    next_start = starts[s]
        event = bucket[now & mask]
        bucket[now & mask] = NONE
        while event != NONE or tries:
            if not tries:
                x = event
                event = later[x]
                events -= 1
                if x < number:  # a segment has left, so its place in the buffer is free
                    busy[x] = False
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
                else:
                    q = np.uint32(x - number)
                    o = out[q]
                    append(turn_head, turn_tail, turn, o, q)
                    todo[tries] = o
                    tries += 1
                continue
            tries -= 1
            o = todo[tries]
            q = turn_head[o]
            if busy[o] or q == NONE:
                continue
            source = q >= waiting
            if source:
                f = np.uint32(q - waiting)
                e = start[f]
            else:
                slot = head[q]
                f, e = flow_in[slot], entry_in[slot]
            final = e + one == start[f + one]
            if not final and credit[o] == 0:
                continue
            # The segment starts.
            hops += 1
            turn_head[o] = turn[q]
            busy[o] = True
            ends[o] = NONE
            if source:
                freed[o] = NONE
                left[f] -= 1
                is_last = left[f] == 0
            else:
                freed[o] = into[q]
                head[q] = following[slot]
                spare[spares] = slot
                spares += one
                # The last segment of a flow is marked by the top bit of its readiness.
                is_last = (ready_at[slot] & 1) == 1
            flits = last_flits[f] if is_last else np.int64(whole)
            takes = flits * per_flit[o]
            done = now + takes
            done_at[o] = done
            append(bucket, bucket_tail, later, done & mask, o)
            events += 1
            # The queue that it came from takes its next turn, or sleeps until it has one.
            again = left[f] > 0 if source else head[q] != NONE
            if again and not source:
                ready = ready_at[head[q]] >> 1
                if ready > done:
                    again = False
                    append(bucket, bucket_tail, later, ready & mask, np.uint32(number + q))
                    events += 1
            if again:
                append(turn_head, turn_tail, turn, o, q)
            if final:
                arriving[f] -= 1
                if arriving[f] == 0:
                    ends[o] = f
                continue
            # It enters the queue at the end of the link.
            credit[o] -= 1
            e += one
            behind = per_flit[path[e]]
            ready = now + hop + max(per_flit[o], takes - flits * behind + behind)
            spares -= one
            slot = spare[spares]
            flow_in[slot], entry_in[slot] = f, e
            ready_at[slot] = ready * 2 + np.int64(is_last)
            q = queue_of[e]
            append(head, tail, following, q, slot)
            if head[q] != slot:
                continue
            o = path[e]
            if busy[o] and done_at[o] >= ready:
                append(turn_head, turn_tail, turn, o, q)
                continue
            append(bucket, bucket_tail, later, ready & mask, np.uint32(number + q))
            events += 1
        now += 1
    return hops
