"""Table 1 of sar-2016: what a scheduling-aware engine gains over another one, over all samples.

Differences are taken sample by sample, with positive as better: other - ours for peaks and dark
fiber, ours - other for links. "max." is the largest difference, and its per cent that of the same
sample's other value ("reduced by 279.0 (or 50.8 %), at least once"). "avg." is the mean difference;
its per cent refers to the mean of the other. With this reading, all Tsubame columns of the paper
imply the same values of SAR (190.7 routes, 15.6 of a job, 123.5 links). Dark fiber is in
percentage points.

Samples without a multi-switch job have no job to average over and are left out.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sar_lab.history.job_history import F64

if TYPE_CHECKING:
    import pyarrow as pa

METRICS = {
    "effective_efi_max": ("max gamma^e", 1.0),
    "job_efi_own": ("avg gamma_max(j)", 1.0),
    "dark_fiber_ratio": ("theta [%]", 100.0),
    "job_links": ("avg #links(j)", -1.0),
}
"""Column of the replay: its name in the paper, and the factor that makes positive better."""


@dataclass(frozen=True)
class Gain:
    """One cell: one metric, `ours` compared with `other`."""

    ours: str
    other: str
    metric: str
    largest: float
    largest_percent: float | None
    """None for dark fiber, which is already in per cent."""
    mean: float
    mean_percent: float | None
    smallest: float
    """The largest loss. The paper's plots show it, its table does not."""
    samples: int

    def json(self) -> dict[str, Any]:
        return asdict(self)


def table1(whole: pa.Table, ours: str, others: list[str]) -> list[Gain]:
    """All cells, one metric after the other; `whole` is `replay.parquet`."""
    gains = []
    busy = np.isfinite(column(whole, ours, "job_links"))
    for metric, (_, sign) in METRICS.items():
        own = np.where(busy, column(whole, ours, metric), np.nan)
        for other in others:
            gain = _gain(own, column(whole, other, metric), sign)
            if gain:
                gains.append(Gain(ours, other, metric, *gain))
    return gains


def column(whole: pa.Table, engine: str, name: str) -> F64:
    """float64[M]: one metric of one engine at each moment, NaN where it is missing."""
    import pyarrow.compute as pc

    rows = whole.filter(pc.equal(whole["engine"], engine))
    return np.array(rows[name].to_numpy(zero_copy_only=False), np.float64)


def _gain(
    own: F64, other: F64, sign: float
) -> tuple[float, float | None, float, float | None, float, int] | None:
    both = np.isfinite(own) & np.isfinite(other)
    if not both.any():
        return None
    own, other = own[both], other[both]
    difference = (other - own) * sign
    top = int(difference.argmax())
    in_percent = sign == 100.0
    return (
        float(difference[top]),
        None if in_percent else _percent(difference[top], other[top]),
        float(difference.mean()),
        None if in_percent else _percent(difference.mean(), other.mean()),
        float(difference.min()),
        len(own),
    )


def _percent(part: float, whole: float) -> float | None:
    return float(100.0 * part / whole) if whole else None
