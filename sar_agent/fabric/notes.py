"""Notes of a fabric that each verdict repeats, since it may be wrong because of them."""

from __future__ import annotations

from sar_agent.fabric.model import Fabric
from sar_agent.fabric.rates import UNREAD
from sar_agent.util.text_files import READ_INSTEAD

SAME_NAME = "machines with the description"


def twin_note(description: str, guids: tuple[int, int], leaves: tuple[str, str]) -> str:
    """What is said of two machines with one description; the second gets no jobs."""
    first, other = (f'0x{guid:016x} at "{leaf}"' for guid, leaf in zip(guids, leaves, strict=True))
    return (
        f'two {SAME_NAME} "{description}": {first} and {other}; only the first has the jobs of '
        "that host"
    )


def repeated_notes(fabric: Fabric) -> tuple[str, ...]:
    """Those of guessed speeds, of machines with one name, and of files that cannot be read."""
    words = (UNREAD, SAME_NAME, READ_INSTEAD)
    return tuple(note for note in fabric.notes if any(word in note for word in words))


def name_notes(fabric: Fabric) -> tuple[str, ...]:
    """Those of machines with one name."""
    return tuple(note for note in fabric.notes if SAME_NAME in note)
