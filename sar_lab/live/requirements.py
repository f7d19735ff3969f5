"""What a whole simulated site needs of the machine, told at once before anything is started."""

from __future__ import annotations

import os
from pathlib import Path

import sar_agent
from sar_agent.errors import SarError
from sar_lab.live.ibsim import umad2sim
from sar_lab.live.opensm import LIBRARY
from sar_lab.live.process import find_program

_PROGRAMS = {
    "ibsim": "ibsim-utils",
    "opensm": "opensm",
    "ibnetdiscover": "infiniband-diags",
    "ibdmchk": "ibutils",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "salloc": "slurm-client",
    "munged": "munge",
}


def require_everything(what: str) -> None:
    """Raises `SarError` naming all that is missing for `what`."""
    if os.geteuid():
        raise SarError(f"{what} starts Slurm's daemons, which want root: run it as root")
    missing = [
        f"{program} (Debian package {package})"
        for program, package in _PROGRAMS.items()
        if not _there(program, package)
    ]
    if missing:
        raise SarError(f"{what} needs {', '.join(missing)}; run: deploy/install-debian-packages")
    umad2sim()
    plugin()


def plugin() -> Path:
    """The plugin built in this source tree, or else the installed one."""
    built = Path(sar_agent.__file__).parents[1] / "opensm_bridge" / "build" / LIBRARY
    for path in (built, *sorted(Path("/usr/lib").glob(f"*/{LIBRARY}"))):
        if path.exists():
            return path
    raise SarError(f"{built} is not built: run make -C opensm_bridge")


def _there(program: str, package: str) -> bool:
    try:
        find_program(program, package)
    except SarError:
        return False
    return True
