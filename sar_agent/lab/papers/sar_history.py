"""What Table 1 and Fig. 7 of sar-2016 share: a month of each stand-in under the paper's engines."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sar_agent.fabric.spec import load_fabric
from sar_agent.lab.mixes.standins import synthetic_history
from sar_agent.lab.replay.pools import pool_for
from sar_agent.lab.replay.run import run_replay
from sar_agent.lab.replay.samples import samples_of
from sar_agent.lab.replay.store import read_result
from sar_agent.lab.replay.work import Work

if TYPE_CHECKING:
    import pyarrow as pa

SYSTEMS = {"taurus": "Taurus", "tsubame": "Tsubame2.5"}
OTHERS = {"dfsssp": "DFSSSP", "ftree": "fat-tree", "updn": "Up*/Down*"}
LABELS = {**OTHERS, "sar": "SAR"}
EVERY = 3600.0
"""Seconds between samples. The paper took one every ten minutes."""
HOW = (
    "Fabrics and histories are stand-ins (docs/replay.md): sizes, arrivals and run times after "
    "Lublin and Feitelson (2003), placement by rules fitted to the share of multi-switch jobs and "
    "the route changes a day that the paper states, not to its results. A month, an hour a sample."
)
BECAUSE = (
    "the real jobs' sizes and places are not published; ours are larger and, on Tsubame2.5, mostly "
    "side by side, which is where oblivious tree routings are at their best"
)


def month(system: str, seed: int, engines: tuple[str, ...] = tuple(LABELS)) -> pa.Table:
    """`replay.parquet` of a month; all cores."""
    fabric = load_fabric(f"standin:{system}")
    history = synthetic_history(f"synthetic:{system},seed={seed}")
    work = Work(fabric, samples_of(fabric, history, EVERY), engines)
    with tempfile.TemporaryDirectory(prefix="sar-replay-") as folder:
        run_replay(history, work, Path(folder), pool_for(None), "")
        return read_result(Path(folder))
