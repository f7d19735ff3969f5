"""ibdmchk's judgement of what OpenSM installed: a checker of routes that is not ours."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from sar_agent.lab.live.ibsim import Ibsim


@dataclass(frozen=True)
class Judgement:
    """`sentence` is in ibdmchk's words where it has any."""

    good: bool
    sentence: str


def judge(ibsim: Ibsim, dumps: Path) -> Judgement:
    """Judges OpenSM's dump files in `dumps` (log flag 0x40), in one virtual lane."""
    none = ibsim.scratch / "empty.mcfdbs"  # it insists on the file
    none.touch()
    files = {"-s": dumps / "opensm-subnet.lst", "-f": dumps / "opensm.fdbs", "-m": none}
    words = [str(word) for pair in files.items() for word in pair]
    said = ibsim.run("ibdmchk", *words).stdout  # its exit code says nothing: it crashes at the end
    if errors := re.findall(r"^-E- (.*)", said, re.MULTILINE):
        return Judgement(False, errors[0])
    paths = re.search(r"Scanned:(\d+) CA to CA paths", said)
    good = paths is not None and "no credit loops found" in said
    if not good:
        return Judgement(False, f"no verdict: {said[-200:]!r}")
    return Judgement(True, f"{paths[1] if paths else 0} paths scanned, no credit loops found")
