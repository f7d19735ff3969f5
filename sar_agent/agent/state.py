"""What a restart needs to know: the routes that were last installed, as JSON on disk.

The state is written only after an install succeeded, so it never claims more than the truth. After
a crash between install and save, other tables are in force than the state says, and the next pass
repairs that by a reroute.
"""

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_serializer, model_validator

from sar_agent.agent.decide import Hold, RoutesBasis
from sar_agent.errors import InputError
from sar_agent.jobs.filter import HostSets
from sar_agent.util.owned_files import PRIVATE, sync_folder
from sar_agent.util.text_files import write_bytes

log = logging.getLogger(__name__)
SPARE = 256
"""Bytes by which a saved state may be longer than the one that room was reserved for."""


class SavedHold(BaseModel):
    """A `Hold` on disk. `until` is by the wall clock, for people and after a reboot. Until then
    `ends` counts, seconds since boot and which boot, so that no step of that clock ends a hold."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    until: float | None = None
    ends: tuple[float, str] | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_an_older_agent(cls, data: Any) -> Any:
        """Holds used to end when the jobs changed, and named them."""
        return {k: v for k, v in data.items() if k != "jobs"} if isinstance(data, dict) else data

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
    identity: str
    """Identity of the tables, as the subnet manager reported it."""

    @model_validator(mode="before")
    @classmethod
    def _of_an_older_agent(cls, data: Any) -> Any:
        """Files without an identity are of agents that only knew OpenSM's plugin."""
        if isinstance(data, dict) and "identity" not in data and "generation" in data:
            return data | {"identity": str(data["generation"])}
        return data

    @field_serializer("jobs")
    def _sorted(self, jobs: HostSets) -> list[list[str]]:
        return sorted(map(sorted, jobs))

    @property
    def basis(self) -> RoutesBasis:
        """What the installed routes were made for."""
        return RoutesBasis(
            self.generation,
            self.jobs,
            bytes.fromhex(self.fabric_digest),
            self.engine,
            self.identity,
        )

    @property
    def held(self) -> Hold | None:
        """The hold, with its end by the wall clock as it is now."""
        return None if self.hold is None else Hold(self.hold.over_at)


class StateStore:
    """`state.json` in `folder`. It is read each time: a rollback by hand is another process."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.json"
        self._room = folder / "state.room"
        """A file of the size that a reserved state needs at most."""
        self._reserved = 0
        """Bytes of it; 0 where nothing is reserved."""
        self._unsaved: State | None = None
        self._logged = ""

    def load(self) -> State | None:
        """The state; None where there is none, or the file is no state: that is logged once.

        Raises `InputError` where it cannot be read: then it is not known what is installed or held.
        """
        if self._unsaved is not None:
            return self._unsaved
        try:
            return State.model_validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except (IsADirectoryError, ValidationError):
            self._log(
                f"{self.path}: cannot be used (it is no state of ours); going on as if there were "
                "no state"
            )
            return None
        except OSError as error:
            raise InputError(
                f"cannot be read ({error.strerror}), so what is installed and held is not known",
                file=self.path,
                remedy=f"give it to the agent's user: chown {_owner(self.path.parent)} {self.path}",
            ) from error

    def save(self, state: State) -> None:
        """Replace the file in one step. A full disk is logged; then this process goes on with what
        it knows."""
        text = _text(state)
        try:
            if len(text) <= self._reserved:
                self._save_reserved(text)
            else:
                write_bytes(self.path, text, PRIVATE)
        except InputError as error:
            self._unsaved = state
            self._log(f"{error}; the state is kept in memory only")
        else:
            self._unsaved, self._logged = None, ""

    def reserve(self, state: State) -> None:
        """Make sure that the disk takes a state like `state` (another generation, time and
        identity) when it is saved. Raises `InputError` where the disk does not."""
        room = _text(state) + b" " * SPARE
        write_bytes(self._room, room, PRIVATE)
        self._reserved = len(room)

    def release(self) -> None:
        """Give back what was reserved and not used."""
        if self._reserved:
            self._reserved = 0
            with suppress(OSError):
                self._room.unlink(missing_ok=True)

    def _save_reserved(self, text: bytes) -> None:
        """Into the reserved file, which then becomes the state: that takes no more room."""
        padded = text.rstrip() + b" " * (self._reserved - len(text.rstrip()) - 1) + b"\n"
        try:
            with self._room.open("r+b") as file:
                file.write(padded)
                file.flush()
                os.fsync(file.fileno())
            self._room.replace(self.path)
            sync_folder(self.path.parent)
        except OSError as error:
            raise InputError(f"cannot be written ({error.strerror})", file=self.path) from error
        self._reserved = 0

    def _log(self, sentence: str) -> None:
        if sentence != self._logged:
            self._logged = sentence
            log.warning("%s", sentence)


def _text(state: State) -> bytes:
    return (state.model_dump_json(indent=1) + "\n").encode()


def _owner(folder: Path) -> str:
    """`user:group` of the folder, for a command; the agent's own where that is not known."""
    try:
        return f"{folder.owner()}:{folder.group()}"
    except (OSError, KeyError):
        return "sar-agent:sar-agent"


def _boot() -> str:
    """Identity of the machine's boot; each start has another."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
