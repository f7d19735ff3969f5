"""ARK and NRK for traces (routing-keys-2017): a key for each phase of each program, made from the
phase's sends alone; ARK takes it as it was made, NRK picks the shift that suits what runs when it
is asked for."""

from __future__ import annotations

from sar_agent.keys.routes import KeyTree, RoutingKey, as_made, choose_shift, make_key, rows_of
from sar_agent.routing.lid_offsets import KeyRows
from sar_lab.trace.play_trace import KeySource, PhaseRequest


def phase_keys(tree: KeyTree, *, shifted: bool) -> KeySource:
    """ARK's answer to each request, or (`shifted`) NRK's. A LID offset for each running phase,
    however many there are: a simulated fabric has no shortage of them."""
    made: dict[tuple[str, str, bytes], RoutingKey] = {}
    rows: dict[tuple[str, str, bytes], KeyRows] = {}

    def answer(asked: PhaseRequest) -> KeyRows:
        name = asked.job, asked.key, asked.source.tobytes() + asked.destination.tobytes()
        if name not in made:
            made[name] = make_key(tree, [(asked.source, asked.destination)])
        key = made[name]
        if shifted:
            return rows_of(key, choose_shift(key, asked.flows), tree.fabric)
        if name not in rows:
            rows[name] = rows_of(key, as_made(key), tree.fabric)
        return rows[name]

    return answer
