"""What each LID offset is for: one `Routes` made of the engine's tables, a shelter, and keys.

`0` the engine's routes. `1` the *shelter*: Up*/Down* in a lane of its own, where connections wait
while offset 0 is rewritten (sar-2016, Section 3.3). `2 … 2**LMC - 1` the pool of routing keys
(routing-keys-2017): a leased offset has the key's rows for the terminals of its job. Whatever
nobody leased holds the shelter, because that changes with the fabric only: were it a copy of
offset 0, every job change would rewrite all offsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sar_agent.errors import InputError
from sar_agent.fabric.lmc import FIRST_KEY as FIRST_KEY
from sar_agent.fabric.model import I32, U8
from sar_agent.routing.routes import NO_ROUTE, Routes

BASE, SHELTER = 0, 1


@dataclass(frozen=True, eq=False)
class KeyRows:
    """The tables of one key: whole rows, since a table knows destinations only."""

    destinations: I32
    """int32[D]: terminals."""
    egress: U8
    """uint8[D, S], as the rows of `Routes.egress`; 255 where the shelter's entry will do, so that
    an install sends no more than the key's flows need."""


def stack(
    base: Routes,
    shelter: Routes | None,
    lmc: int,
    keys: Mapping[int, KeyRows] | None = None,
    *,
    own_lane: bool = True,
) -> Routes:
    """`base` (one offset) with what stands at the other 2**lmc - 1.

    `shelter` is of one offset and lane; None: offset 0 is repeated instead. With `own_lane` it
    gets the service level and lane after those of `base`, else it travels in lane 0, as keys
    always do, because hosts are told their offset and not a level. Raises `InputError` for a
    shelter beside lanes that are chosen hop by hop, which no level can say, and for keys at
    offsets that are no keys'.
    """
    several = lmc > 0 and len(base.egress) == 1
    offsets = 1 << lmc if several else 1
    keys = keys or {}
    for offset in keys:
        if not FIRST_KEY <= offset < offsets:
            raise InputError(
                f"no routing key fits at LID offset {offset} where there are {offsets} offsets",
                remedy="keys have offsets from 2 up to 2^LMC - 1; give OpenSM a larger lmc",
            )
    if not several:
        return base
    if shelter and base.hop_lane is not None:
        raise InputError(
            "no shelter can be given to lanes that are chosen hop by hop",
            remedy='set agent.lanes = "path"',
        )
    lanes, own_lane = base.virtual_lanes, own_lane and shelter is not None
    egress = np.empty((offsets, *base.egress.shape[1:]), np.uint8)
    egress[BASE], egress[SHELTER:] = base.egress[0], (shelter or base).egress[0]
    levels: U8 | None = None
    if own_lane or base.service_level is not None:
        levels = np.zeros_like(egress)
        if base.service_level is not None:
            levels[BASE] = base.service_level[0]
            levels[SHELTER:] = 0 if shelter else levels[BASE]
        if own_lane:
            levels[SHELTER:] = lanes
    for offset, rows in keys.items():
        there = rows.egress != NO_ROUTE
        egress[offset, rows.destinations] = np.where(
            there, rows.egress, egress[offset, rows.destinations]
        )
        if levels is not None:
            levels[offset, rows.destinations] = 0
    return replace(base, egress=egress, service_level=levels, virtual_lanes=lanes + int(own_lane))


def own_rows(routes: Routes, offset: int) -> slice:
    """Destinations of which an offset of a plan says what offset 0 does not: terminals."""
    terminals = routes.egress.shape[1] - routes.egress.shape[2]
    return slice(terminals if offset else None)


def repeat_to_switches(routes: Routes) -> Routes:
    """With the ways of offset 0 to switches at every other offset, too.

    Most switches have one LID: what other offsets say of them is in no table, and is read back as
    this. With `lmc_esp0 TRUE` in opensm.conf they have more, which are then led like the first.
    """
    switches = slice(own_rows(routes, SHELTER).stop, None)
    tables = [routes.egress, *([] if routes.service_level is None else [routes.service_level])]
    if all((table[1:, switches] == table[BASE, switches]).all() for table in tables):
        return routes
    tables = [table.copy() for table in tables]
    for table in tables:
        table[1:, switches] = table[BASE, switches]
    return replace(routes, egress=tables[0], service_level=tables[1] if tables[1:] else None)


def base_of(routes: Routes) -> Routes:
    """The engine's own routes, out of what `stack` made, or was read back of it."""
    if len(routes.egress) == 1:
        return routes
    levels, lanes = routes.service_level, routes.virtual_lanes
    if levels is not None:
        lanes = 1 + int(levels[BASE].max(initial=0))
        levels = levels[:1] if lanes > 1 else None
    return replace(routes, egress=routes.egress[:1], service_level=levels, virtual_lanes=lanes)
