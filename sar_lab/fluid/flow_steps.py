"""`Flows`: the messages of all jobs, and the order of their steps."""

from __future__ import annotations

from typing import NamedTuple

from sar_agent.fabric.model import U32, Bool
from sar_lab.fluid.flow_links import F64


class Flows(NamedTuple):
    """F flows in P steps. All flows of a step start together, `wait` seconds after time 0 or after
    the end of all flows of the previous step: consecutive steps are phases with barriers. No step
    is empty."""

    source: U32
    """uint32[F], terminal."""
    destination: U32
    """uint32[F], another terminal."""
    size: F64
    """float64[F], Gbit, above 0."""
    job: U32
    """uint32[F], index in the mix."""
    step: U32
    """uint32[F], ascending."""
    last: Bool
    """bool[P]: no step waits for this one; the next step starts at time 0."""
    wait: F64
    """float64[P], seconds of computation before the flows start."""
