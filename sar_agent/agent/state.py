"""What a restart needs to know: the routes that were last installed, as JSON on disk.

The state is written only after an install succeeded, so it never claims more than the truth. After
a crash between install and save, other tables are in force than the state says, and the next pass
repairs that by a reroute.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, field_serializer

from sar_agent.demand.rails import rails_of
from sar_agent.install.plan import Plan
from sar_agent.jobs.filter import HostSets
from sar_agent.util.store import JsonStore


class SavedHold(BaseModel):
    """A person's wish to keep the routes for a time or, where none is given, until `sar-agent
    resume`. `until` is by the wall clock, for people and after a reboot. Until then `ends` counts,
    seconds since boot and which boot, so that no step of that clock ends a hold."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    until: float | None = None
    ends: tuple[float, str] | None = None

    @classmethod
    def lasting(cls, seconds: float) -> SavedHold:
        """A hold for `seconds` from now on."""
        ends = time.clock_gettime(time.CLOCK_BOOTTIME) + seconds, _boot()
        return cls(until=time.time() + seconds, ends=ends)

    @property
    def over_at(self) -> float | None:
        """When the hold ends, by the wall clock as it is now."""
        if self.until is None or not self.ends or self.ends[1] != _boot():
            return self.until
        return time.time() + self.ends[0] - time.clock_gettime(time.CLOCK_BOOTTIME)

    def ended(self) -> SavedHold:
        """The hold, over whatever the clock says. It stays in the state until the next install, as
        the reason for that."""
        return SavedHold(until=0.0)

    def active(self, now: float) -> bool:
        """Whether the routes are still to be kept."""
        end = self.over_at
        return end is None or now < end


class State(BaseModel):
    """The last successful install. What a later release has added is passed over, so that a return
    to this one forgets no hold."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    generation: int
    engine: str
    jobs: HostSets
    fabric_digest: str
    """Hexadecimal."""
    installed_at: float
    """Unix seconds; of a plan that is not installed, when it was made."""
    hold: SavedHold | None = None
    """Of a person's rollback; `held` says whether it is over."""
    by_rail: bool = False
    """Whether the jobs were planned for by rails (`demand/endpoints.py`)."""
    lanes: str = ""
    """How the tables do without credit loops, in words; empty where an older release made them."""
    identity: str
    """Identity of the tables, as the subnet manager reported it."""

    @property
    def held(self) -> bool:
        """Whether a person's wish keeps these routes now."""
        return self.hold is not None and self.hold.active(time.time())

    @classmethod
    def before_install(
        cls, plan: Plan, engine: str, jobs: HostSets, hold: SavedHold | None = None
    ) -> State:
        """Of a plan, but for what its install decides (generation, identity, time)."""
        return cls(
            generation=plan.generation,
            engine=engine,
            jobs=jobs,
            fabric_digest=plan.fabric.digest.hex(),
            by_rail=rails_of(plan.fabric) is not None,
            lanes=plan.routes.lanes_in_words,
            installed_at=time.time(),
            hold=hold,
            identity="",
        )

    @field_serializer("jobs")
    def _sorted(self, jobs: HostSets) -> list[list[str]]:
        return sorted(map(sorted, jobs))


class StateStore(JsonStore[State]):
    """`state.json` in `folder`. It is read each time: a rollback by hand is another process."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            folder / "state.json", State, "going on as if there were no state", indent=1
        )

    def load(self, *, required: bool = True) -> State | None:
        """As `JsonStore.load`: without the file it is not known what is installed and held."""
        return super().load(required=required)

    @contextmanager
    def room_for(self, state: State) -> Iterator[None]:
        """Around an install, or the end of a hold, that must outlive this process. Raises
        `InputError`, before anything happens, where the disk does not take a state like this."""
        self.reserve(state)
        try:
            yield
        finally:
            self.release()


def _boot() -> str:
    """Identity of the machine's boot; each start has another."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
