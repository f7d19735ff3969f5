"""The common part of Table 1 and Fig. 7 of sar-2016: a month of each stand-in under its engines."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sar_agent.fabric.spec import load_fabric
from sar_lab.mixes.synthetic_histories import synthetic_history
from sar_lab.replay.pools import pool_for
from sar_lab.replay.replay_folder import read_result
from sar_lab.replay.replay_plan import ReplayPlan
from sar_lab.replay.replay_run import run_replay
from sar_lab.replay.samples import samples_of
from sar_lab.research.papers import pictures

if TYPE_CHECKING:
    import pyarrow as pa

SYSTEMS = {"taurus": "Taurus", "tsubame": "Tsubame2.5"}
OTHERS = {e: pictures.LABELS[e] for e in ("opensm-dfsssp", "opensm-ftree", "opensm-updn")}
"""OpenSM's own tables (`sar_lab/opensm_tables`)."""
LABELS = {**OTHERS, "sar": "SAR"}
EVERY = 3600.0
"""Seconds between samples. The paper took one every ten minutes."""


def month(
    system: str,
    seed: int,
    largest: int | None = None,
    engines: Sequence[str] = tuple(LABELS),
    from_scratch: bool = True,
) -> pa.Table:
    """`replay.parquet` of a month, computed on all cores; `largest` limits the nodes of a job. Each
    state is computed from scratch, as in the paper, or else from the one before, as the agent does.
    """
    fabric = load_fabric(f"standin:{system}")
    spec = f"synthetic:{system},seed={seed}" + (f",largest={largest}" if largest else "")
    history = synthetic_history(spec)
    samples = samples_of(fabric, history, EVERY)
    work = ReplayPlan(fabric, samples, tuple(engines), from_scratch=from_scratch)
    with tempfile.TemporaryDirectory(prefix="sar-replay-") as folder:
        run_replay(history, work, Path(folder), pool_for(None), "")
        return read_result(Path(folder))
