"""The fabric format `ibnetdiscover`: its output, from a file or a terminal capture."""

from __future__ import annotations

import re

from sar_agent.errors import InputError
from sar_agent.fabric.cabling import assemble
from sar_agent.fabric.hostnames import HostMapper
from sar_agent.fabric.model import Fabric
from sar_agent.fabric.node_records import AGAIN, parse_lines

_TITLE = r"^[ \t]*# Topology file: generated on"
_SEEN = re.compile(rf"{_TITLE}|^[ \t]*switchguid=0x[0-9a-f]+\(", re.MULTILINE)
_BY_HAND = re.compile(r'^Switch\s*\d+\s*"[^"\n]+"\s*#\s*"[^\n]*"[ \t]*\n\[', re.MULTILINE)
"""A switch without LID, and its first port: ibnetdiscover always prints the LID, generators of
networks for ibsim do not."""


def read_ibnetdiscover(text: str, name: str = "file", mapper: HostMapper | None = None) -> Fabric:
    """The fabric of the text; `name` is for messages.

    The text may be what a terminal or a page shows: without tabs, indented, with prompts. A node's
    GUID is the one of its id in quotes, as in cables and tables, also where chassis print another.
    A host without a usable description is named by its node id, `H-0002c90300080e84`; routers
    (`Rt`) and aggregation nodes are terminals of kind OTHER. `Fabric.notes` lists what was
    corrected or left out.

    Raises `InputError` for text that is not ibnetdiscover's output, is cut short, or contradicts
    itself, and for several outputs in one text.
    """
    titles = re.findall(_TITLE, text, re.MULTILINE)
    if len(titles) > 1:
        raise InputError(
            f"the file holds {len(titles)} dumps of ibnetdiscover, one after the other",
            file=name,
            remedy="give one dump at a time, each from a file of its own",
        )
    nodes, notes = parse_lines(text, name, strict=True)
    if not nodes:
        raise InputError("this is not ibnetdiscover output: no node in it", file=name, remedy=AGAIN)
    if not any(node.kind == "H" for node in nodes):
        raise InputError("no host in it: the file is cut short", file=name, remedy=AGAIN)
    return assemble(name, nodes, mapper, notes=notes, remedy=AGAIN)


class Ibnetdiscover:
    """The fabric format `ibnetdiscover`."""

    def recognises(self, text: str) -> bool:
        seen = _SEEN.search(text)
        return bool(seen and (seen[0].lstrip()[0] == "#" or not _BY_HAND.search(text)))

    read = staticmethod(read_ibnetdiscover)
