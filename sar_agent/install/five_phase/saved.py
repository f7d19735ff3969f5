"""What a coordinator that starts again must know, on disk before it is acted on.

`update.json` has the run, `subscribers.json` who has subscribed. Leases and acknowledgements are in
neither: a restart gives new leases, and asks for all acknowledgements anew or needs none.
"""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from sar_agent.fabric.text import write_text
from sar_agent.install.five_phase.machine import Member, State
from sar_agent.install.five_phase.words import Phase

log = logging.getLogger(__name__)


class _Saved(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SavedRun(_Saved):
    """See `State`."""

    phase: Phase
    update: int
    generation: int
    why: str


class SavedMember(_Saved):
    """See `Member`."""

    job: str
    uid: int | None


_MEMBERS = TypeAdapter(dict[str, SavedMember])


class Disk:
    """Two files in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.run, self.members = folder / "update.json", folder / "subscribers.json"

    def load(self) -> State | None:
        """None where nothing usable was saved: then nobody knows who has subscribed."""
        try:
            run = SavedRun.model_validate_json(self.run.read_bytes())
            members = _MEMBERS.validate_json(self.members.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            what = error.strerror if isinstance(error, OSError) else "it is none of ours"
            log.warning(
                "%s: what was saved of the last update cannot be used (%s); subscribers are "
                "waited for as if there had been none",
                self.run,
                what,
            )
            return None
        known = {n: Member(m.job, m.uid, 0.0, 0.0) for n, m in members.items()}
        state = State(run.phase, run.update, run.generation, run.why)
        return replace(state, members=known)

    def save(self, before: State | None, after: State) -> None:
        """Writes what differs, and returns once it is on the disk. Raises `InputError`."""
        if before is None or _run(before) != _run(after):
            _write(self.run, _run(after).model_dump_json())
        if before is None or before.members.keys() != after.members.keys():
            _write(self.members, _MEMBERS.dump_json(_members(after)).decode())


def _run(state: State) -> SavedRun:
    return SavedRun(
        phase=state.phase, update=state.update, generation=state.generation, why=state.why
    )


def _members(state: State) -> dict[str, SavedMember]:
    return {name: SavedMember(job=one.job, uid=one.uid) for name, one in state.members.items()}


def _write(path: Path, text: str) -> None:
    write_text(path, text + "\n")
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)  # the new name, too, is there after a power cut
    finally:
        os.close(folder)
