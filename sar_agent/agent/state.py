"""What a restart needs to know: the routes that were last installed, as JSON on disk.

Written only after an install succeeded, so it never claims more than the truth; a crash between
install and save shows as another generation in force, and is mended by a reroute.
"""

from __future__ import annotations

import logging
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError, field_serializer

from sar_agent.agent.decide import Hold, Made
from sar_agent.errors import InputError
from sar_agent.fabric.text import write_text
from sar_agent.jobs.filter import HostSets

log = logging.getLogger(__name__)


class SavedHold(BaseModel):
    """See `Hold`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    jobs: HostSets
    until: float | None = None

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
    def made(self) -> Made:
        """For the decision."""
        return Made(self.generation, self.jobs, bytes.fromhex(self.fabric_digest), self.engine)

    @property
    def held(self) -> Hold | None:
        """Likewise."""
        return None if self.hold is None else Hold(self.hold.jobs, self.hold.until)


class StateStore:
    """`state.json` in `folder`. Read afresh each time: a rollback by hand is another process."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.json"
        self._unsaved: State | None = None
        self._said = ""

    def load(self) -> State | None:
        """The state; None where there is none, or none that can be used: that is said once."""
        if self._unsaved is not None:
            return self._unsaved
        try:
            return State.model_validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            what = error.strerror if isinstance(error, OSError) else "it is no state of ours"
            self._say(f"{self.path}: cannot be used ({what}); going on as if there were none")
            return None

    def save(self, state: State) -> None:
        """Replace it in one step. A full disk is said; this process goes on with what it knows."""
        try:
            write_text(self.path, state.model_dump_json(indent=1) + "\n")
        except InputError as error:
            self._unsaved = state
            self._say(f"{error}; the state is kept in memory only")
        else:
            self._unsaved, self._said = None, ""

    def _say(self, sentence: str) -> None:
        if sentence != self._said:
            self._said = sentence
            log.warning("%s", sentence)
