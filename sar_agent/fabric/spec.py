"""`--fabric`: a file in any registered format, recognised by its content, or a spec like `xgft:…`.

A format is an object in the entry-point group `sar_agent.fabric_formats`, ours and those of other
packages alike. What `fabric.command` prints takes the same path as a file.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from sar_agent.errors import InputError
from sar_agent.fabric import FORMATS
from sar_agent.fabric.dragonfly import dragonfly_fabric
from sar_agent.fabric.grids import hyperx_fabric, torus_fabric
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.slimfly import slimfly_fabric
from sar_agent.fabric.standins import standin_fabric
from sar_agent.fabric.xgft import xgft_fabric
from sar_agent.util.extensions import extension_names, extensions, load_point
from sar_agent.util.other_files import other_file
from sar_agent.util.text_files import first_readable, normal_lines, read_text

GENERATORS = {
    "xgft": xgft_fabric,
    "dragonfly": dragonfly_fabric,
    "torus": torus_fabric,
    "hyperx": hyperx_fabric,
    "slimfly": slimfly_fabric,
    "standin": standin_fabric,
}
"""Spec prefix to the function that takes the whole spec."""

FOLDER_FILES = (
    "ibdiagnet2.ibnetdiscover", "ibdiagnet2.db_csv", "ibdiagnet2.lst", "opensm-subnet.lst",
)  # fmt: skip
"""Dumps of the fabric in the folders that ibdiagnet and OpenSM write, the most complete first."""

_REMEDIES = {
    "squeue's output": "are --fabric and --jobs exchanged?",
    "a dump of forwarding tables": "give it as --routes; as --fabric, ibnetdiscover's output",
    "an error of ibnetdiscover": "run ibnetdiscover as root, or as a user who may open "
    "/dev/infiniband/umad*",
    "another file of ibdiagnet": f"give its folder, or {', '.join(FOLDER_FILES[:3])}",
}
"""For files that are given by mistake; for all others, `_REMEDY`."""
_REMEDY = "save what ibnetdiscover prints without options"

_SPEC = re.compile(r"([a-z]+):.*")


class FabricFormat(Protocol):
    """A text format of fabrics. An entry point names a class, which is called without arguments."""

    def recognises(self, text: str) -> bool:
        """Whether `text` looks like this format; `read` may still refuse it."""

    def read(self, text: str, name: str, mapper: HostMapper | None) -> Fabric:
        """The fabric of `text`, which ends in a newline; `name` is the file or the command, for
        messages; `mapper` leads from node descriptions to hosts. Raises `InputError`."""


def load_fabric(spec_or_path: str | Path, mapper: HostMapper | None = None) -> Fabric:
    """The fabric of a spec, of a file in a registered format, or of a folder with files of
    `FOLDER_FILES`, such as ibdiagnet's `/var/tmp/ibdiagnet2`: of the first that can be read;
    `Fabric.notes` names the others.

    Raises `InputError` for an unknown spec, and for a file that is missing, unreadable, empty,
    binary, in no known format, or broken.
    """
    text = str(spec_or_path)
    if match := _SPEC.fullmatch(text):
        if match[1] in GENERATORS:
            return _chosen(GENERATORS[match[1]](text), mapper)
        if not os.path.isfile(text):  # noqa: PTH113 - Path's raises on odd names
            known = ", ".join(f"{name}:" for name in GENERATORS)
            raise InputError(f"{text!r}: no such kind of fabric", remedy=f"known are {known}")
    path = Path(text)
    if not os.path.isdir(text):  # noqa: PTH112
        return _of_file(path, mapper)
    found = first_readable(path, FOLDER_FILES, lambda file: _of_file(file, mapper))
    if found is None:
        raise InputError(
            f"is a directory without {', '.join(FOLDER_FILES[:-1])} or {FOLDER_FILES[-1]}",
            file=path,
            remedy="name a file in it",
        )
    fabric, notes = found
    return replace(fabric, notes=(*notes, *fabric.notes)) if notes else fabric


def _of_file(path: Path, mapper: HostMapper | None) -> Fabric:
    return parse_fabric(read_text(path) + "\n", str(path), mapper)


def parse_fabric(text: str, name: str, mapper: HostMapper | None = None) -> Fabric:
    """The fabric of a file's text, or of a command's output; it ends in a newline, and `name` is
    the file or the command, for messages. Windows' line ends, byte-order marks and the colours of a
    terminal may be in it.

    The formats are asked in the order of their names; the first that recognises the text reads it.
    Raises `InputError` where no format recognises the text, or its reader refuses it.
    """
    text = normal_lines(text)
    broken = []
    for point in extensions(FORMATS):
        try:
            fabric_format: FabricFormat = load_point(point, "fabric format")()
        except InputError as error:  # the text may be of another format
            broken.append(f"; {error}")
            continue
        if fabric_format.recognises(text):
            return _chosen(fabric_format.read(text, name, mapper), mapper)
    if what := other_file(text):
        raise InputError(
            f"this is {what}, not a fabric", file=name, remedy=_REMEDIES.get(what, _REMEDY)
        )
    raise InputError(
        "not a fabric in any known format" + "".join(broken),
        file=name,
        remedy=f"save what ibnetdiscover prints; known formats are "
        f"{', '.join(extension_names(FORMATS))}",
    )


def _chosen(fabric: Fabric, mapper: HostMapper | None) -> Fabric:
    return replace(fabric, traffic=mapper.traffic) if mapper and mapper.traffic else fabric
