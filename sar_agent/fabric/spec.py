"""`--fabric`: a file in any format we read, told by its content, or a spec like `xgft:…`."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sar_agent.errors import InputError
from sar_agent.fabric.dragonfly import dragonfly_fabric
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.ibnetdiscover import read_ibnetdiscover
from sar_agent.fabric.ibsim_net import read_ibsim_net
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.standins import standin_fabric
from sar_agent.fabric.subnet_lst import read_subnet_lst
from sar_agent.fabric.torus import torus_fabric
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.util.text_files import read_text

GENERATORS = {
    "xgft": xgft_fabric,
    "dragonfly": dragonfly_fabric,
    "torus": torus_fabric,
    "standin": standin_fabric,
}
"""Spec prefix to the function that takes the whole spec."""

_SPEC = re.compile(r"([a-z]+):.*")
_SUBNET_LST = re.compile(r"^\s*\{\s*(?:CA|SW|RT)\s+Ports:", re.MULTILINE)
_IBNETDISCOVER = re.compile(
    r"^# Topology file: generated on|^switchguid=0x[0-9a-f]+\(", re.MULTILINE
)
_NET = re.compile(r'^(?:Switch|Hca|Ca)\s*\d+\s*"', re.MULTILINE)


def load_fabric(spec_or_path: str | Path, mapper: HostMapper | None = None) -> Fabric:
    """The fabric of a spec, or of a file: ibnetdiscover output, ibsim `.net`, `subnet.lst`.

    Raises `InputError` on an unknown spec, and on a file that is missing, unreadable, empty,
    binary, in no known format or bad in its own.
    """
    text = str(spec_or_path)
    if match := _SPEC.fullmatch(text):
        if match[1] in GENERATORS:
            return GENERATORS[match[1]](text)
        if not os.path.isfile(text):  # noqa: PTH113 - Path's raises on odd names
            known = ", ".join(f"{name}:" for name in GENERATORS)
            raise InputError(f"{text!r}: no such kind of fabric", remedy=f"known are {known}")
    return parse_fabric(read_text(Path(text)) + "\n", text, mapper)


def parse_fabric(content: str, name: str, mapper: HostMapper | None = None) -> Fabric:
    """The fabric of a file's text, which ends in a newline; `name` is for messages.

    Raises `InputError` where it is in no known format or bad in its own.
    """
    if _IBNETDISCOVER.search(content):
        return read_ibnetdiscover(content, mapper, name=name)
    if _SUBNET_LST.search(content):
        return read_subnet_lst(content, mapper, name=name)
    if _NET.search(content):
        return read_ibsim_net(content, mapper, name=name)
    raise InputError(
        "not a fabric in any known format",
        file=name,
        remedy="give ibnetdiscover's output, an ibsim .net, a subnet.lst or a spec like "
        "xgft:2;4,4;1,2",
    )
