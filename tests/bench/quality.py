"""The quality of routes under a job mix, compared with lower bounds."""

from __future__ import annotations

from typing import NamedTuple

from sar_agent.fabric import Fabric
from sar_agent.jobs import JobMix
from sar_agent.quality import measure
from sar_agent.routing import Routes

ROUNDS = 100
"""Rounds of the slower bound: on eight fabrics 300 rounds improved it by one route on one "
"fabric."""


class Quality(NamedTuple):
    """A row of numbers for JSON and CSV."""

    efi: int
    """Largest effective EFI."""
    efi_bound: int
    load: float
    load_bound: float
    throughput_mean: float
    throughput_worst: float
    dark: float
    dark_bound: float

    @property
    def efi_ratio(self) -> float:
        """Largest effective EFI divided by its bound; 1 is optimal."""
        return self.efi / self.efi_bound

    @property
    def load_ratio(self) -> float:
        """Largest load divided by its bound; 1 is optimal."""
        return self.load / self.load_bound

    def cells(self) -> tuple[str, str, str, str]:
        """The cells of `COLUMNS`."""
        return (
            f"{self.efi_ratio:.2f}",
            f"{self.load_ratio:.2f}",
            f"{self.throughput_mean:.3f} ({self.throughput_worst:.3f})",
            f"{self.dark:.1%}",
        )


COLUMNS = ("EFI / bound", "load / bound", "throughput (worst)", "dark fiber")


def quality_of(fabric: Fabric, mix: JobMix, routes: Routes) -> Quality:
    """The quality of routes, which need not be checked."""
    found = measure(fabric, mix, routes, price_rounds=ROUNDS)
    return Quality(
        found.effective_efi_max,
        found.lower_bound_efi_max,
        found.load_max,
        found.lower_bound_load_max,
        found.throughput_mean,
        found.throughput_min,
        found.dark_fiber_ratio,
        found.least_dark_fiber,
    )
