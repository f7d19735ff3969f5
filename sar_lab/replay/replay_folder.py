"""The folder of a replay: finished pieces, then the whole result.

    asked.json          the inputs that determine the result; another replay's folder is refused
    pieces/*.parquet    one complete file for each piece; removed once the result is written
    replay.parquet      a row for each moment and engine
    seconds.parquet     the time that each state took, on the machine that computed it
    replay.json         records left out, reconfigurations a day, Table 1, the command

`replay.parquet` and `replay.json` do not depend on machines or clocks.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sar_agent.errors import InputError
from sar_agent.util.text_files import write_bytes, write_text
from sar_lab.replay.chain import StateRow
from sar_lab.replay.replay_plan import ReplayPiece, ReplayPlan

if TYPE_CHECKING:
    import pyarrow as pa

_TYPES = {"int": "int64", "float": "float64", "str": "string"}


class ReplayFolder:
    """The folder of one replay."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, asked: dict[str, Any]) -> None:
        """Creates the folder, or continues one that was begun for the same inputs. Raises
        `InputError`."""
        path = self.folder / "asked.json"
        try:
            (self.folder / "pieces").mkdir(parents=True, exist_ok=True)
            known = path.read_text() if path.exists() else None
        except OSError as error:
            raise InputError(
                f"cannot be used as a folder ({error.strerror})",
                file=self.folder,
                remedy="give another --out",
            ) from error
        if known is None:
            write_text(path, json.dumps(asked, indent=1) + "\n")
        elif not _is_json_of(known, asked):
            raise InputError(
                "the folder holds another replay (fabric, history, engines, samples, chunk or "
                "version differ)",
                file=self.folder,
                remedy="give another --out, or remove the folder to start from scratch",
            )

    @property
    def is_done(self) -> bool:
        """Whether the result is complete."""
        return (self.folder / "replay.json").exists()

    def missing(self, pieces: Sequence[ReplayPiece]) -> list[ReplayPiece]:
        """The pieces that are still to compute; none where the result is complete."""
        if self.is_done:
            return []
        return [piece for piece in pieces if not self._path(piece).exists()]

    def put(self, piece: ReplayPiece, rows: Sequence[StateRow]) -> None:
        """Stores a finished piece. Raises `InputError` where it cannot be written."""
        write_bytes(self._path(piece), _bytes(_table(rows)))

    def finish(self, work: ReplayPlan, pieces: Sequence[ReplayPiece]) -> pa.Table:
        """Joins the pieces into `replay.parquet`, which it returns, and `seconds.parquet`."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        states = pa.concat_tables([pq.read_table(self._path(piece)) for piece in pieces])
        seconds = states.select(["engine", "state", "seconds"])
        whole = _spread(work, states.drop_columns(["seconds"]))
        write_bytes(self.folder / "seconds.parquet", _bytes(seconds))
        write_bytes(self.folder / "replay.parquet", _bytes(whole))
        return whole

    def close(self, summary: dict[str, Any], pieces: Sequence[ReplayPiece]) -> None:
        """Writes the summary, which marks the result as complete, and removes the pieces."""
        write_text(self.folder / "replay.json", json.dumps(summary, indent=1) + "\n")
        for piece in pieces:
            self._path(piece).unlink(missing_ok=True)

    def _path(self, piece: ReplayPiece) -> Path:
        return self.folder / "pieces" / f"{piece.name}.parquet"


def read_result(folder: Path) -> pa.Table:
    """The rows of a finished replay. Raises `InputError`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "replay.parquet"
    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"the replay cannot be read ({str(error).splitlines()[0]})",
            file=path,
            remedy="run sar-lab replay with this --out",
        ) from error


def _is_json_of(text: str, asked: dict[str, Any]) -> bool:
    try:
        return bool(json.loads(text) == asked)
    except ValueError:
        return False


def _table(rows: Sequence[StateRow]) -> pa.Table:
    import pyarrow as pa

    # Types come from the declaration, since a column may contain only None.
    fields = StateRow.__dataclass_fields__.values()
    types = {f.name: _TYPES[str(f.type).split(" ")[0]] for f in fields}
    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in types.items()])
    return pa.Table.from_pylist([asdict(row) for row in rows], schema)


def _spread(work: ReplayPlan, states: pa.Table) -> pa.Table:
    """From one row for each state to one row for each moment; only the first moment of a state has
    its changed entries."""
    import pyarrow as pa

    samples = work.samples
    count, moments = samples.states, len(samples.at)
    take = np.concatenate([samples.state + count * e for e in range(len(work.engines))])
    whole = states.take(pa.array(take))
    first = np.tile(np.append(True, samples.state[1:] != samples.state[:-1]), len(work.engines))
    changed = whole["entries_changed"].to_numpy(zero_copy_only=False)
    changed = np.where(first, changed, 0.0)
    place = whole.schema.get_field_index("entries_changed")
    nulls = np.isnan(changed)
    column = pa.array(np.nan_to_num(changed).astype(np.int64), mask=nulls)
    whole = whole.set_column(place, "entries_changed", column)
    at = pa.array(np.tile(samples.at, len(work.engines)))
    sample = pa.array(np.tile(np.arange(moments), len(work.engines)))
    return whole.add_column(1, "at", at).add_column(1, "sample", sample)


def _bytes(table: pa.Table) -> bytes:
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()
