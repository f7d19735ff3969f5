"""Routes files as the plugin gets them, made by an engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sar_agent.fabric import Fabric
from sar_agent.formats.conversion import routes_to_file
from sar_agent.formats.routes_file import RoutesFile, decode, encode
from sar_agent.jobs.synthetic import synthetic_mix
from sar_agent.routing import Options, load_engine
from sar_agent.routing.lanes import assign_lanes


def routed_file(
    fabric: Fabric, engine: str, seed: int, lanes: str = "", offsets: int = 1
) -> RoutesFile:
    """Routes of made-up jobs by an engine, without numbers; `lanes`: "hop", "path" or none."""
    options = Options(max_lanes=8, lanes="hop" if lanes == "hop" else "path")
    files = []
    for offset in range(offsets):
        routes = load_engine(engine).route(fabric, synthetic_mix(fabric, seed + offset), options)
        if lanes:
            routes = assign_lanes(fabric, routes, options)
        files.append(decode(encode(routes_to_file(fabric, routes, 1))))
    if offsets > 1:
        tables = np.concatenate([file.forwarding for file in files])
        files[0] = replace(files[0], forwarding=tables)
    return files[0]
