"""Routing engines: `(fabric, mix, options) -> Routes`, behind one protocol and one registry."""

from sar_agent.routing.engine import (
    Engine,
    Options,
    PreviousRoutes,
    Rerouting,
    engine_names,
    is_source_routed,
    knows_jobs,
    load_engine,
    site_engines,
)
from sar_agent.routing.routes import Routes

__all__ = [
    "Engine",
    "Options",
    "PreviousRoutes",
    "Rerouting",
    "Routes",
    "engine_names",
    "is_source_routed",
    "knows_jobs",
    "load_engine",
    "site_engines",
]
