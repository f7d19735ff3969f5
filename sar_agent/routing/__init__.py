"""Engines: `(fabric, mix, options) -> Routes`, behind one protocol and one registry."""

from sar_agent.routing.engine import Engine, Options, engine_names, load_engine
from sar_agent.routing.routes import Routes

__all__ = ["Engine", "Options", "Routes", "engine_names", "load_engine"]
