"""Keys for traces (routing-keys-2017): a routing key for each phase of each program, made from the
messages of that phase alone. ARK uses the key unchanged; NRK chooses a shift for the flows that run
when the key is requested. Both are ours, and as printed (`engines/keys_printed.py`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sar_agent.routing.keys import (
    KeyTree,
    RoutingKey,
    Shift,
    choose_shift,
    make_key,
    rows_of,
    unshifted,
)  # fmt: skip
from sar_agent.routing.keys.key import Flows
from sar_agent.routing.lid_offsets import KeyRows
from sar_lab.research.engines.keys_printed import READINGS, printed_key, printed_shift
from sar_lab.research.trace.play_trace import KeySource, PhaseRequest

Shifter = Callable[[RoutingKey, NDArray[np.integer]], Shift]


def _ours(tree: KeyTree, flows: Flows, shifted: bool = False) -> RoutingKey:
    return make_key(tree, [flows], shifted=shifted)


KINDS: dict[str, tuple[Callable[[KeyTree, Flows], RoutingKey], Shifter | None]] = {
    "ark": (_ours, None),
    "nrk": (partial(_ours, shifted=True), choose_shift),
    "ark-printed": (printed_key, None),
    "ark-printed-drawn": (partial(printed_key, drawn=True), None),
    "nrk-printed": (printed_key, partial(printed_shift, reading=READINGS[0])),
    "nrk-printed-links": (printed_key, partial(printed_shift, reading=READINGS[1])),
}
"""Name → how a key is made, and shifted."""


def phase_keys(tree: KeyTree, kind: str) -> KeySource:
    """Answers key requests as a kind does. Every running phase gets a LID offset: a simulated
    fabric has as many as needed."""
    make, shift = KINDS[kind]
    made: dict[tuple[str, str, bytes], RoutingKey] = {}
    rows: dict[tuple[str, str, bytes], KeyRows] = {}

    def answer(request: PhaseRequest) -> KeyRows:
        name = request.job, request.key, request.source.tobytes() + request.destination.tobytes()
        if name not in made:
            made[name] = make(tree, (request.source, request.destination))
        key = made[name]
        if shift:
            return rows_of(key, shift(key, request.flows), tree.fabric)
        if name not in rows:
            rows[name] = rows_of(key, unshifted(key), tree.fabric)
        return rows[name]

    return answer
