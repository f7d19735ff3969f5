"""Mutated inputs through a reader, and what came out that is no sentence.

A number names an input, so a defect is found again with `try_all(reader, number, 1)`.
"""

from __future__ import annotations

import traceback
import tracemalloc
from dataclasses import dataclass, field

from sar_agent.config.model import ConfigError
from sar_agent.errors import SarError
from tests.property.mutator import mutated
from tests.property.readers import Reader

LONGEST_SENTENCE = 1500
"""Characters of what a user is told of an input."""
TRACED = 200
"""One input of so many has its memory traced, which makes it slow."""


@dataclass
class Defect:
    """Anything that came out of a reader and is no `SarError`."""

    what: str
    number: int
    """Of the first input."""
    data: bytes
    count: int = 1


@dataclass
class Figures:
    """Of one reader."""

    name: str
    inputs: int = 0
    taken: int = 0
    peak: int = 0
    """Most bytes that one input of those that were traced took while it was read."""
    peak_number: int = 0
    defects: dict[str, Defect] = field(default_factory=dict)


def try_all(reader: Reader, first: int, count: int) -> Figures:
    """Inputs `first` … of one reader; numbers of different readers give different bytes."""
    figures = Figures(reader.name)
    for number in range(first, first + count):
        _one(reader, mutated(reader.seeds, number), number, figures)
    return figures


def _one(reader: Reader, data: bytes, number: int, figures: Figures) -> None:
    traced = number % TRACED == 0
    if traced:
        tracemalloc.start()
    figures.inputs += 1
    try:
        reader.read(data)
        figures.taken += 1
    except ConfigError:
        pass  # a sentence for each key, each in a line
    except SarError as error:
        if len(str(error).splitlines()) != 1 or len(str(error)) > LONGEST_SENTENCE:
            _defect(figures, ValueError(f"not one sentence: {error}"), number, data)
    except Exception as error:
        _defect(figures, error, number, data)
    finally:
        if traced:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            if peak > figures.peak:
                figures.peak, figures.peak_number = peak, number


def _defect(figures: Figures, error: BaseException, number: int, data: bytes) -> None:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "sar_agent" in f.filename]
    place = (
        f"{frames[-1].filename.rpartition('sar_agent')[2]}:{frames[-1].lineno}" if frames else ""
    )
    what = f"{type(error).__name__} in {place}"
    if what in figures.defects:
        figures.defects[what].count += 1
    else:
        figures.defects[what] = Defect(f"{what}: {str(error)[:200]}", number, data)
