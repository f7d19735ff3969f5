"""All the ways in which a switch is written: one look-up for every command.

A managed switch describes itself as `MF0;SLG02-04:MQM8700/U1`. Our pages and reports print
`SLG02-04` (and the unit where it is not U1), our topology.conf `MF0_SLG02-04_MQM8700_U1` or
`S-b8599f0300a00200`, ibnetdiscover the id, others the GUID.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sar_agent.fabric.model import Fabric

_MANAGED = re.compile(r"MF0;(?P<name>[^:;]+):(?P<model>[^/]*)(?P<unit>/.*)?")
_NOT_SLURMS = re.compile(r"[^A-Za-z0-9_.-]+")
_WITH_GUID = re.compile(r'"?.+"? \((0x[0-9a-fA-F]{1,16})\)')
"""As reports name one of several switches that are called alike."""
_GUID = re.compile(r"(?:0x|S-)?(?P<digits>[0-9a-fA-F]{16})|0x(?P<few>[0-9a-fA-F]{1,15})")


def short_switch_name(name: str) -> str:
    """`MF0;SLG02-04:MQM8700/U1` to `SLG02-04`, `MF0;core:MCS8500/L05/U2` to `core/L05/U2`; any
    other name as it is."""
    match = _MANAGED.fullmatch(name)
    if not match:
        return name
    unit = match["unit"] or ""
    return match["name"] + ("" if unit == "/U1" else unit)


def slurm_switch_name(name: str) -> str:
    """The name as Slurm can read it, in our topology.conf: `MF0_SLG02-04_MQM8700_U1`."""
    return _NOT_SLURMS.sub("_", name).strip("_-.")


class SwitchNames:
    """The switches of a fabric by everything that they are called."""

    def __init__(self, fabric: Fabric) -> None:
        self._guids = {int(guid): s for s, guid in enumerate(fabric.switch_guid.tolist())}
        self._by: list[dict[str, set[int]]] = [{}, {}]
        for s, name in enumerate(fabric.switch_name):
            self._by[0].setdefault(name, set()).add(s)
            for spelled in _spellings(name):
                self._by[1].setdefault(spelled.lower(), set()).add(s)

    def __call__(self, text: str) -> set[int]:
        """All switches of this name: those that are described so go before other spellings."""
        name = text.strip().strip('"').strip()
        if name in self._by[0]:
            return self._by[0][name]
        guid = _WITH_GUID.fullmatch(name)
        match = _GUID.fullmatch(guid[1] if guid else name)
        if match and (s := self._guids.get(int(match["digits"] or match["few"], 16))) is not None:
            return {s}
        return self._by[1].get(name.lower(), set())


def _spellings(name: str) -> Iterator[str]:
    yield from (name, short_switch_name(name), slurm_switch_name(name))
    if match := _MANAGED.fullmatch(name):
        yield match["name"]
        yield f"{match['name']}{match['unit'] or ''}"
