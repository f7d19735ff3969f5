"""Reads `--history` and `--fabric` of `replay`, and `--fabric` of `assess`: recorded or
synthetic."""

from __future__ import annotations

from pathlib import Path

from sar_agent.commands.host_options import load_given
from sar_agent.fabric import Fabric
from sar_agent.fabric.components import require_connected
from sar_lab.history import JobHistory, read_history
from sar_lab.history.leonardo import REMARK, is_node_list, leonardo_stand_in
from sar_lab.mixes.synthetic_histories import is_synthetic, synthetic_history


def history_of(spec: str) -> JobHistory:
    """The recorded or synthetic history that `spec` names. Raises `InputError`."""
    return synthetic_history(spec) if is_synthetic(spec) else read_history(spec)


def fabric_of(spec: str) -> tuple[Fabric, tuple[str, ...]]:
    """The connected fabric that `spec` names, and remarks on it for reports.
    A list of Leonardo's nodes gives the stand-in of its network. Raises `InputError`."""
    if is_node_list(Path(spec)):
        return leonardo_stand_in(Path(spec)), (REMARK,)
    fabric = load_given(spec)
    require_connected(fabric)
    remarks = ("The fabric is a stand-in, built from published data of the machine.",)
    return fabric, remarks if spec.startswith("standin:") else ()
