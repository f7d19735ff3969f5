"""What a restart needs to know: the routes that were last installed, as JSON on disk.

Written only after an install succeeded, so it never claims more than the truth; a crash between
install and save shows as another generation in force, and is mended by a reroute.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError, field_serializer

from sar_agent.agent.decide import Hold, RoutesBasis
from sar_agent.errors import InputError
from sar_agent.jobs.filter import HostSets
from sar_agent.util.owned_files import PRIVATE
from sar_agent.util.text_files import write_text

log = logging.getLogger(__name__)


class SavedHold(BaseModel):
    """See `Hold`. `until` is by the wall clock, for people and after a reboot; before one, `ends`
    counts: seconds since boot, and which boot, so that no step of that clock ends a hold."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    jobs: HostSets
    until: float | None = None
    ends: tuple[float, str] | None = None

    @classmethod
    def lasting(cls, jobs: HostSets, seconds: float) -> SavedHold:
        """From now on."""
        ends = time.clock_gettime(time.CLOCK_BOOTTIME) + seconds, _boot()
        return cls(jobs=jobs, until=time.time() + seconds, ends=ends)

    @property
    def over_at(self) -> float | None:
        """`until` by the wall clock as it is now."""
        if self.until is None or not self.ends or self.ends[1] != _boot():
            return self.until
        return time.time() + self.ends[0] - time.clock_gettime(time.CLOCK_BOOTTIME)

    @field_serializer("jobs")
    def _sorted(self, jobs: HostSets) -> list[list[str]]:
        return sorted(map(sorted, jobs))


class State(BaseModel):
    """The last successful install."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    generation: int
    engine: str
    jobs: HostSets
    fabric_digest: str
    """Hexadecimal."""
    installed_at: float
    """Unix seconds."""
    hold: SavedHold | None = None

    @field_serializer("jobs")
    def _sorted(self, jobs: HostSets) -> list[list[str]]:
        return sorted(map(sorted, jobs))

    @property
    def made(self) -> RoutesBasis:
        """For the decision."""
        return RoutesBasis(
            self.generation, self.jobs, bytes.fromhex(self.fabric_digest), self.engine
        )

    @property
    def held(self) -> Hold | None:
        """Likewise; when it ends is told by the wall clock as it is now."""
        return None if self.hold is None else Hold(self.hold.jobs, self.hold.over_at)


class StateStore:
    """`state.json` in `folder`. Read afresh each time: a rollback by hand is another process."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.json"
        self._unsaved: State | None = None
        self._said = ""

    def load(self) -> State | None:
        """The state; None where there is none, or what is there is no state: that is said once.

        Raises `InputError` where it cannot be read: nobody knows then what is installed, or held.
        """
        if self._unsaved is not None:
            return self._unsaved
        try:
            return State.model_validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except (IsADirectoryError, ValidationError):
            self._say(
                f"{self.path}: cannot be used (it is no state of ours); going on as if there were "
                "none"
            )
            return None
        except OSError as error:
            raise InputError(
                f"cannot be read ({error.strerror}), so what is installed and held is not known",
                file=self.path,
                remedy=f"give it to the agent's user: chown {_owner(self.path.parent)} {self.path}",
            ) from error

    def save(self, state: State) -> None:
        """Replace it in one step. A full disk is said; this process goes on with what it knows."""
        try:
            write_text(self.path, state.model_dump_json(indent=1) + "\n", PRIVATE)
        except InputError as error:
            self._unsaved = state
            self._say(f"{error}; the state is kept in memory only")
        else:
            self._unsaved, self._said = None, ""

    def _say(self, sentence: str) -> None:
        if sentence != self._said:
            self._said = sentence
            log.warning("%s", sentence)


def _owner(folder: Path) -> str:
    """`user:group` of the folder, for a command; the agent's own where it cannot be told."""
    try:
        return f"{folder.owner()}:{folder.group()}"
    except (OSError, KeyError):
        return "sar-agent:sar-agent"


def _boot() -> str:
    """Another one after each start of the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
