"""ibdmchk on exported files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from sar_agent.fabric import Fabric
from sar_agent.formats.export import export_routes
from sar_agent.routing import Routes

HEAPS = ({}, {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"})
"""ibdmchk counts ports in a table of 50: a switch with more of them on shortest ways makes it write
behind that. What stands there, and so whether it gets to its verdict, is another in each heap."""


def ibdmchk(fabric: Fabric, routes: Routes, folder: Path) -> str:
    """Its words; its exit code means nothing, as it crashes after the verdict."""
    export_routes(folder, fabric, routes, ["ibdm"])
    files = ["-s", "subnet.lst", "-f", "fdbs", "-m", "empty.mcfdbs", "-c", "psl", "-d", "slvl"]
    for heap in HEAPS:
        words = subprocess.run(
            ["ibdmchk", *files], cwd=folder, capture_output=True, text=True, env=os.environ | heap
        ).stdout
        if "credit loop" in words.lower():
            return words
    raise AssertionError(f"no verdict: {words[-2000:]}")
