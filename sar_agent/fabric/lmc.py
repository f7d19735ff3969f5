"""The LMC that a fabric allows: a subnet has 49,151 LIDs for all of its ports.

With an LMC of l a port has 2**l LIDs that start at a multiple of 2**l; a switch has one. OpenSM
gives each node the lowest LIDs that are free and aligned, so at every moment at most one block of
2**l is partly used, by switches. Whether an LMC fits is therefore a count of blocks, whatever the
order.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sar_agent.errors import InputError
from sar_agent.fabric.cabling import MAX_LID
from sar_agent.fabric.model import Fabric

LARGEST_LMC = 7
"""The largest LMC of the InfiniBand specification: it has three bits."""
FIRST_KEY = 2
"""The first LID offset of routing keys: offset 0 holds the engine's routes, 1 the shelter."""


@dataclass(frozen=True)
class LmcPlan:
    """The consequences of one LMC for a fabric of `ports` host ports and `switches`."""

    ports: int
    switches: int
    lmc: int
    largest: int
    """The largest LMC that fits; -1 where not even one LID per port fits."""

    @property
    def lids(self) -> int:
        """The number of LIDs that this LMC needs."""
        return self.switches + (self.ports << self.lmc)

    @property
    def fits(self) -> bool:
        """Whether the subnet has as many LIDs."""
        return self.lmc <= self.largest

    @property
    def keys(self) -> int:
        """The number of LID offsets for routing keys."""
        return max(0, (1 << self.lmc) - FIRST_KEY)

    def require(self) -> LmcPlan:
        """The plan itself. Raises `InputError` where it does not fit."""
        if self.fits:
            return self
        raise InputError(
            f"LMC {self.lmc} takes {self.lids:,} LIDs for {self.ports:,} ports and "
            f"{self.switches:,} switches, and a subnet has {MAX_LID:,}"
            if self.lmc <= LARGEST_LMC
            else f"LMC {self.lmc} is more than the {LARGEST_LMC} that InfiniBand knows",
            remedy=f"the largest that fits is {self.largest}, {_keys(1 << max(0, self.largest))}"
            if self.largest >= 0
            else "no LMC fits; split the fabric into two subnets",
        )

    def words(self) -> str:
        """A sentence for a person."""
        return (
            f"LMC {self.lmc} takes {self.lids:,} of {MAX_LID:,} LIDs: offset 0 for the engine's "
            f"routes, {_keys(1 << self.lmc)}; the largest that fits is {self.largest}"
        )

    def json(self) -> dict[str, Any]:
        """The object for `--json`."""
        counts = {"lids": self.lids, "lids_of_a_subnet": MAX_LID, "keys": self.keys}
        return asdict(self) | counts | {"fits": self.fits}


def lmc_plan(fabric: Fabric, lmc: int | None = None) -> LmcPlan:
    """The plan for `lmc`, or else for the largest that fits. Every HCA port counts, including
    aggregation units of switches: OpenSM gives them LIDs, too."""
    return lmc_plan_of(fabric.terminals, fabric.switches, lmc)


def lmc_plan_of(ports: int, switches: int, lmc: int | None = None) -> LmcPlan:
    """The plan where only these counts are known."""
    largest = max(
        (bits for bits in range(LARGEST_LMC + 1) if _fits(ports, switches, bits)), default=-1
    )
    return LmcPlan(ports, switches, max(0, largest) if lmc is None else lmc, largest)


def _fits(ports: int, switches: int, lmc: int) -> bool:
    blocks = (MAX_LID + 1) >> lmc
    return ports - (-(switches + 1) >> lmc) <= blocks  # LID 0 is not assigned


def _keys(offsets: int) -> str:
    if offsets == 1:
        return "no spare LIDs for the shelter or routing keys"
    keys = offsets - FIRST_KEY
    return f"offset 1 for the shelter, {keys or 'none'} for routing keys"
