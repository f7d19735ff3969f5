"""ARK and NRK for traces (routing-keys-2017): a routing key for each phase of each program, made
from the messages of that phase alone. ARK uses the key unchanged; NRK chooses the best shift for
the flows that run when the key is requested."""

from __future__ import annotations

from sar_agent.routing.keys import KeyTree, RoutingKey, choose_shift, make_key, rows_of, unshifted
from sar_agent.routing.lid_offsets import KeyRows
from sar_lab.research.trace.play_trace import KeySource, PhaseRequest


def phase_keys(tree: KeyTree, *, shifted: bool) -> KeySource:
    """Answers key requests as ARK does, or (`shifted`) as NRK does. Every running phase gets a LID
    offset: a simulated fabric has as many as needed."""
    made: dict[tuple[str, str, bytes], RoutingKey] = {}
    rows: dict[tuple[str, str, bytes], KeyRows] = {}

    def answer(request: PhaseRequest) -> KeyRows:
        name = request.job, request.key, request.source.tobytes() + request.destination.tobytes()
        if name not in made:
            made[name] = make_key(tree, [(request.source, request.destination)])
        key = made[name]
        if shifted:
            return rows_of(key, choose_shift(key, request.flows), tree.fabric)
        if name not in rows:
            rows[name] = rows_of(key, unshifted(key), tree.fabric)
        return rows[name]

    return answer
