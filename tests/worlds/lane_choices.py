"""Routes with lanes by path, or hop by hop, also where one lane would do with Up*/Down* paths."""

from __future__ import annotations

from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.routing import Options, Routes, load_engine
from sar_agent.routing.lanes import routed
from sar_agent.routing.lanes.hop import hop_lanes

BY_PATH = Options(hosts_use_path_records=True, max_lanes=8)


def laid_by(kind: str, fabric: Fabric, mix: JobMix, engine: str = "sar") -> Routes:
    """`kind` is path, or hop: then by path, too, where no lanes hop by hop are found."""
    plain, found = load_engine(engine).route(fabric, mix, Options()), None
    if kind == "hop":
        found = hop_lanes(fabric, plain) or hop_lanes(fabric, plain, other_paths=True)
    return found or routed(load_engine(engine), fabric, mix, BY_PATH)
