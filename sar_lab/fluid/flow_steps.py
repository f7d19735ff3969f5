"""`Flows`: who sends how much to whom, and what waits for what."""

from __future__ import annotations

from typing import NamedTuple

from sar_agent.fabric.model import Bool
from sar_agent.routing.dag import U32
from sar_lab.fluid.flow_links import F64


class Flows(NamedTuple):
    """F flows in P steps. All flows of a step start together, `wait` after time 0 or after all of
    the step before it have ended: steps in a row are phases with barriers. No step is empty."""

    source: U32
    """uint32[F], terminal."""
    destination: U32
    """uint32[F], another terminal."""
    size: F64
    """float64[F], Gbit, above 0."""
    job: U32
    """uint32[F], place in the mix."""
    step: U32
    """uint32[F], ascending."""
    last: Bool
    """bool[P]: nothing waits for this step; the next one starts at time 0."""
    wait: F64
    """float64[P], seconds from then until the flows start: computation."""
