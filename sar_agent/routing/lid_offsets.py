"""The purpose of each LID offset: one `Routes` made of the engine's tables, the shelter and keys.

Offset 0 holds the engine's routes. Offset 1 holds the *shelter*: Up*/Down* routes in a lane of
their own, which connections use while offset 0 is rewritten (sar-2016, Section 3.3). Offsets 2 …
2**LMC - 1 are the pool of routing keys (routing-keys-2017): a leased offset has the key's rows for
the terminals of its job. All other rows of the pool hold the shelter, because that changes with the
fabric only; as copies of offset 0, every job change would rewrite all offsets.
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
    """uint8[D, S], as the rows of `Routes.egress`; `NO_ROUTE` where the shelter's entry will do, so
    that an install sends no more than the key's flows need."""


def stack(
    base: Routes,
    shelter: Routes | None,
    lmc: int,
    keys: Mapping[int, KeyRows] | None = None,
    *,
    own_lane: bool = True,
) -> Routes:
    """`base` (one offset) extended by the tables of the other 2**lmc - 1 offsets.

    `shelter` has one offset and one lane; with None, offset 0 is repeated instead. With `own_lane`
    the shelter gets the service level and lane after those of `base`, else it travels in lane 0.
    Keys always travel in lane 0, because hosts learn their offset and no service level. Raises
    `InputError` for a shelter beside lanes chosen hop by hop, which service levels cannot express,
    and for keys at offsets outside the pool.
    """
    several = lmc > 0 and len(base.egress) == 1
    offsets = 1 << lmc if several else 1
    keys = keys or {}
    for offset in keys:
        if not FIRST_KEY <= offset < offsets:
            raise InputError(
                f"no routing key fits at LID offset {offset} where there are {offsets} offsets",
                remedy="keys have offsets from 2 up to 2^LMC - 1; give OpenSM a larger lmc "
                "while no job runs: all LIDs change",
            )
    if not several:
        return base
    if shelter and base.hop_lane is not None:
        raise InputError(
            "routes with lanes chosen hop by hop cannot have a shelter",
            remedy="set agent.hosts_use_path_records",
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
        has_entry = rows.egress != NO_ROUTE
        egress[offset, rows.destinations] = np.where(
            has_entry, rows.egress, egress[offset, rows.destinations]
        )
        if levels is not None:
            levels[offset, rows.destinations] = 0
    return replace(base, egress=egress, service_level=levels, virtual_lanes=lanes + int(own_lane))


def own_rows(routes: Routes, offset: int) -> slice:
    """The destinations for which an offset has rows of its own: above offset 0, terminals only."""
    terminals = routes.egress.shape[1] - routes.egress.shape[2]
    return slice(terminals if offset else None)


def repeat_to_switches(routes: Routes) -> Routes:
    """`routes` with the rows of offset 0 for switches at every other offset, too.

    Most switches have one LID, so rows of other offsets for them are in no table, and reading back
    yields those of offset 0. With `lmc_esp0 TRUE` in opensm.conf switches have more LIDs, which are
    then routed like the first.
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
    """The engine's own routes (offset 0), from routes that `stack` made or that were read back."""
    if len(routes.egress) == 1:
        return routes
    levels, lanes = routes.service_level, routes.virtual_lanes
    if levels is not None:
        lanes = 1 + int(levels[BASE].max(initial=0))
        levels = levels[:1] if lanes > 1 else None
    return replace(routes, egress=routes.egress[:1], service_level=levels, virtual_lanes=lanes)
