"""What dumps say of adaptive routing: OpenSM's options, switches' settings, groups of ports.

- `opensm.conf` of NVIDIA's subnet manager: `routing_engine`, `ar_sl_mask`, `hbf_sl_mask`,
  `ar_transport_mask` (UD 1, RC 2, UC 4, DC 8; 0xA if not given);
- section AR_INFO of `ibdiagnet2.db_csv`: whether a switch routes adaptively (`e`), on which service
  levels (`enable_by_sl_mask` where `by_sl_en`, else all; `enable_by_sl_mask_hbf`), and for which
  transports not (`by_transport_disable`);
- `ibdiagnet2.far`: for each switch groups of ports (`group sub-group WHBF ports`), then entries
  `LID port state group`, where the state `Static` is not adaptive.

Sources: `adaptive_routing_info` and `ARInfoRecord` in NVIDIA's ibutils2, and two public readers of
AR_INFO with these column names; a public converter of `.far` to CSV, and Rapimt's grammar; NVIDIA's
release notes for the options. **Weak spot:** no real file was at hand, and no public text of what
`smparquery` prints was found, so that is not read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from sar_agent.errors import InputError
from sar_agent.fabric.csv_sections import SEEN, Row, guid_of, known, number_of, read_sections
from sar_agent.formats.fdbs import ENTRY, SWITCH
from sar_agent.util.text_files import passed_over, read_text

ALL_LEVELS = 0xFFFF
TRANSPORTS = ("UD", "RC", "UC", "DC")
"""The bits of a transport mask, from the lowest."""
OPTIONS = ("routing_engine", "ar_sl_mask", "hbf_sl_mask", "ar_transport_mask")
_COLUMNS = (
    "NODEGUID", "E", "by_sl_en", "enable_by_sl_mask", "by_transport_disable", "by_sl_hbf_en",
    "enable_by_sl_mask_hbf",
)  # fmt: skip
_GROUP = re.compile(r"(\d{1,9})\s+\d+\s+\d+(?:\s+([\d, ]*))?$")


class SwitchSettings(NamedTuple):
    """How one switch is set."""

    enabled: bool
    levels: int
    """Mask of the service levels that it routes adaptively."""
    hashed: int
    """Mask of those that it routes by a hash of the flow."""
    excluded: int
    """Mask of transports that it does not route adaptively."""


@dataclass
class AdaptiveDump:
    """What one file says; what it does not say is empty."""

    source: str
    options: dict[str, str] = field(default_factory=dict)
    switches: dict[int, SwitchSettings] = field(default_factory=dict)
    """By GUID."""
    entries: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)
    """Adaptive ones: GUID → LID → port without adaptive routing, group."""
    groups: dict[int, dict[int, set[int]]] = field(default_factory=dict)
    """GUID → group → ports."""
    notes: list[str] = field(default_factory=list)


def read_adaptive_dump(path: Path) -> AdaptiveDump:
    """What a file says. Raises `InputError` where it says nothing of adaptive routing."""
    text, found, bad = read_text(path), AdaptiveDump(str(path)), list[tuple[int, str]]()
    if SEEN.search(text):
        _of_section(text, found, bad)
    elif SWITCH.search(text):
        _of_far(text, found, bad)
    else:
        lines = (line.split("#")[0].split(None, 1) for line in text.splitlines())
        found.options = {
            words[0]: words[1].strip() for words in lines if len(words) > 1 and words[0] in OPTIONS
        }
        if not found.options.keys() - {"routing_engine"}:
            found.options = {}
    if not (found.options or found.switches or found.groups):
        why = f" ({passed_over(bad)[0]})" if bad else ""
        raise InputError(
            f"says nothing of adaptive routing{why}",
            file=path,
            remedy="give opensm.conf of NVIDIA's subnet manager, ibdiagnet2.db_csv (AR_INFO) or "
            "ibdiagnet2.far (ibdiagnet -r)",
        )
    found.notes = [f"{path}: {note}" for note in passed_over(bad)]
    return found


def mask_of(text: str) -> int:
    """A mask of OpenSM's options. Raises `InputError`."""
    try:
        return number_of(text, ALL_LEVELS)
    except ValueError as error:
        raise InputError(f"{text[:40]!r} is no mask of 16 bits") from error


def _of_section(text: str, found: AdaptiveDump, bad: list[tuple[int, str]]) -> None:
    sections = read_sections(text, {"AR_INFO": _COLUMNS})

    def add(row: Row) -> None:
        guid, *texts = row.values
        e, by_level, levels, excluded, hashes, hashed = (
            number_of(known(each) or "0", ALL_LEVELS) for each in texts
        )
        found.switches[guid_of(guid)] = SwitchSettings(
            bool(e), levels if by_level else ALL_LEVELS, hashed * bool(hashes), excluded
        )

    sections.each("AR_INFO", add)
    bad += sections.bad


def _of_far(text: str, found: AdaptiveDump, bad: list[tuple[int, str]]) -> None:
    groups, entries = dict[int, set[int]](), dict[int, tuple[int, int]]()
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if switch := SWITCH.match(line):
            groups = found.groups.setdefault(int(switch[1], 16), {})
            entries = found.entries.setdefault(int(switch[1], 16), {})
        elif group := _GROUP.match(line):
            ports = {int(port) for port in re.findall(r"\b\d{1,9}\b", group[2] or "")}
            groups.setdefault(int(group[1]), set()).update(ports)
        elif (entry := ENTRY.match(line)) and entry[4] not in (None, "Static"):
            last = line.split()[-1]
            if len(last) < 9 and last.isdecimal():
                entries[int(entry[1], 16)] = int(entry[3]), int(last)
            else:
                bad.append((number, f"{line[:60]!r} names no group"))
