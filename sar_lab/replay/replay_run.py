"""Runs a replay and summarises its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sar_agent.errors import Unserved
from sar_agent.routing import knows_jobs
from sar_lab.history import JobHistory, LeftOut
from sar_lab.history.job_history import EXAMPLES
from sar_lab.opensm_tables import lab_engine
from sar_lab.replay.pools import Pool
from sar_lab.replay.replay_folder import ReplayFolder, read_result
from sar_lab.replay.replay_plan import ReplayPlan
from sar_lab.replay.samples import Samples
from sar_lab.replay.table1 import column, table1

if TYPE_CHECKING:
    import pyarrow as pa

CHAINS = "each piece of `chunk` states begins with a full computation for the state before it"
FROM_SCRATCH = "every state is a full computation"
DAY = 86400.0
Progress = Callable[[int, int], None]
"""Called with the number of finished pieces and of all pieces."""


def run_replay(
    history: JobHistory,
    work: ReplayPlan,
    out: Path,
    pool: Pool,
    command: str,
    progress: Progress = lambda done, all: None,
) -> dict[str, Any]:
    """Computes the pieces that are missing in `out`; returns the contents of `replay.json`. Raises
    `InputError`, and `Unserved` where an engine serves no state at all."""
    store, pieces = ReplayFolder(out), work.pieces()
    store.open(work.asked())
    missing = store.missing(pieces)
    done = len(pieces) - len(missing)
    progress(done, len(pieces))
    for piece, rows in pool(work, missing):
        store.put(piece, rows)
        done += 1
        progress(done, len(pieces))
    whole = read_result(out) if store.is_done else store.finish(work, pieces)
    summary = summary_of(history, work, whole, command)
    store.close(summary, pieces)
    return summary


def summary_of(
    history: JobHistory, work: ReplayPlan, whole: pa.Table, command: str
) -> dict[str, Any]:
    """The contents of `replay.json`."""
    samples = work.samples
    left_out = list(samples.left_out)
    for engine in work.engines:
        served = np.isfinite(column(whole, engine, "effective_efi_max"))
        if not served.any():
            why = whole.filter(_of(whole, engine))["failed"][0].as_py()
            raise Unserved(f"{engine} serves no moment of this history: {why}")
        if not served.all():
            why = whole.filter(_of(whole, engine))["failed"].to_pylist()
            left_out.append(_moments(~served, samples, f"that {engine} does not serve", why))
    idle = column(whole, work.engines[0], "jobs") == 0
    if idle.any():
        left_out.append(_moments(idle, samples, "without a multi-switch job, for Table 1"))
    gains = [
        gain.json()
        for ours in work.engines
        if knows_jobs(lab_engine(ours))
        for gain in table1(whole, ours, [e for e in work.engines if _is_rival(e, ours)])
    ]
    return {
        "command": command,
        "remarks": list(history.remarks),
        "fabric": work.fabric.name,
        "history": history.name,
        "chunk": work.chunk,
        "objective": work.objective,
        "chains": FROM_SCRATCH if work.from_scratch else CHAINS,
        "moments": len(samples.at),
        "states": samples.states,
        "multi_switch_jobs": len(samples.parts),
        "single_switch_jobs": samples.single_switch,
        "left_out": [{**asdict(each), "examples": list(each.examples)} for each in left_out],
        "reconfigurations": reconfigurations(samples),
        "engines": {engine: _means(whole, engine) for engine in work.engines},
        "table1": gains,
    }


def reconfigurations(samples: Samples) -> dict[str, Any]:
    """Changes of the mix from one moment to the next, for each day from the first moment on. An
    incomplete last day does not count, unless it is the only one."""
    begin, span = samples.at[0], samples.at[-1] - samples.at[0]
    step = float(np.median(np.diff(samples.at))) if len(samples.at) > 1 else 0.0
    days = max(1, int((span + step) // DAY))
    changed = samples.at[1:][samples.state[1:] != samples.state[:-1]]
    a_day = np.bincount(((changed - begin) // DAY).astype(np.int64), minlength=days)[:days]
    return {
        "a_day": a_day.tolist(),
        "mean": float(a_day.mean()),
        "min": int(a_day.min()),
        "max": int(a_day.max()),
    }


def _moments(
    which: NDArray[np.bool_], samples: Samples, what: str, why: Sequence[str] = ()
) -> LeftOut:
    first = np.flatnonzero(which)[:EXAMPLES].tolist()
    words = (
        datetime.fromtimestamp(samples.at[m], UTC).isoformat() + (f" ({why[m]})" if why else "")
        for m in first
    )
    return LeftOut(f"moments {what}", int(which.sum()), tuple(words))


def _is_rival(engine: str, ours: str) -> bool:
    """Table 1 compares an engine that knows the jobs with all that do not, and with those before it
    by name: sar-plus with sar."""
    return engine < ours or not knows_jobs(lab_engine(engine))


_MEANS = (
    "effective_efi_max", "effective_efi_mean", "lower_bound_efi_max", "dark_fiber_ratio",
    "least_dark_fiber", "load_max", "lower_bound_load_max", "throughput_mean", "throughput_min",
    "job_efi_own", "job_efi_shared", "job_links", "entries_changed",
)  # fmt: skip


def _means(whole: pa.Table, engine: str) -> dict[str, float | None]:
    """Means of all measures over the moments that have a value."""
    means: dict[str, float | None] = {}
    for name in _MEANS:
        values = column(whole, engine, name)
        values = values[np.isfinite(values)]
        means[name] = float(values.mean()) if len(values) else None
    return means


def _of(whole: pa.Table, engine: str) -> Any:
    import pyarrow.compute as pc

    return pc.equal(whole["engine"], engine)
