"""ARK and NRK for traces (routing-keys-2017): a key for each phase of each program, made from the
phase's sends alone; ARK takes it as it was made, NRK picks the shift that suits what runs when it
is asked for."""

from __future__ import annotations

from sar_agent.errors import InputError
from sar_agent.fabric import Fabric
from sar_agent.lab.trace.play import Asked, Keys
from sar_agent.routing.keys import Key, as_made, choose_shift, key_tree, make_key, rows_of
from sar_agent.routing.offsets import KeyRows


def routing_keys(fabric: Fabric, how: str) -> Keys:
    """One LID offset for each running phase, however many there are: a simulated fabric has no
    shortage of them. `how` is `ark` or `nrk`, else `InputError`. Raises `Unserved` where the fabric
    is no fat tree."""
    if how not in ("ark", "nrk"):
        raise InputError(f"no kind of routing keys is called {how!r}", remedy="ark, nrk")
    tree = key_tree(fabric)
    made: dict[tuple[str, str, bytes], Key] = {}
    rows: dict[tuple[str, str, bytes], KeyRows] = {}

    def answer(asked: Asked) -> KeyRows:
        flows = asked.source, asked.destination
        name = asked.job, asked.key, flows[0].tobytes() + flows[1].tobytes()
        if name not in made:
            made[name] = make_key(tree, [flows])
        key = made[name]
        if how == "nrk":
            return rows_of(key, choose_shift(key, asked.flows), fabric)
        if name not in rows:
            rows[name] = rows_of(key, as_made(key), fabric)
        return rows[name]

    return answer
