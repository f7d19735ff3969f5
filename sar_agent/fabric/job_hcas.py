"""The option `--hca`: which HCAs of a host its jobs use."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sar_agent.errors import InputError
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.model import Fabric, Kind
from sar_agent.fabric.spec import GENERATORS, load_fabric

_GENERATED = re.compile(f"({'|'.join(GENERATORS)}):")


def load_with_hcas(spec: str, hcas: Sequence[str] | None) -> Fabric:
    """The fabric that `spec` names, in which jobs use HCA ports that match one of the globs `hcas`,
    or all if there are none. Raises `InputError` if no host has such a port."""
    if hcas and _GENERATED.match(spec):
        raise InputError("--hca is for dumps", remedy="hosts of a generated fabric have one HCA")
    fabric = load_fabric(spec, HostMapper(job_hcas=tuple(hcas or ())))
    if hcas and not (fabric.terminal_kind == Kind.COMPUTE).any():
        named = next((text for text in fabric.terminal_description if " " in text), "")
        raise InputError(
            f"no HCA matches {' or '.join(hcas)}",
            file=spec,
            remedy=f"the first of its node descriptions is {named!r}"
            if named
            else "its node descriptions name no HCA, so write /1 for the first port",
        )
    return fabric
