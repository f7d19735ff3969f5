"""Counted weights on disk (`weights.json`), so that a restart of the agent goes on with them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sar_agent.counters.weight_levels import LEAST
from sar_agent.counters.weight_priors import MOST_PRIORS, Prior
from sar_agent.util.owned_files import PRIVATE
from sar_agent.util.text_files import write_bytes

log = logging.getLogger(__name__)
LARGEST = 2**24
"""Bytes of a file that is read."""
Weight = Annotated[float, Field(ge=0, le=2)]


class SavedWeights(BaseModel):
    """Weights of running jobs, the levels that routes are made for, and those of earlier jobs."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    jobs: dict[str, Weight] = {}
    levels: dict[str, Annotated[int, Field(ge=0, le=LEAST)]] = {}
    priors: Annotated[tuple[Prior, ...], Field(max_length=MOST_PRIORS)] = ()


class WeightStore:
    """`weights.json` in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "weights.json"
        self._saved = b""

    def load(self) -> SavedWeights:
        """What was saved; nothing where there is no file, or it cannot be read: that is logged."""
        try:
            if self.path.stat().st_size > LARGEST:
                raise OSError(0, f"it has more than {LARGEST} bytes")
            return SavedWeights.model_validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return SavedWeights()
        except (OSError, ValidationError) as error:
            what = error.strerror if isinstance(error, OSError) else "it holds no weights of ours"
            log.warning("%s: cannot be used (%s); weights are counted again", self.path, what)
            return SavedWeights()

    def save(self, weights: SavedWeights) -> None:
        """Replace the file in one step, if anything has changed. Raises `InputError` where the disk
        does not take it."""
        text = (weights.model_dump_json() + "\n").encode()
        if text != self._saved:
            write_bytes(self.path, text, PRIVATE)
            self._saved = text
