"""The programs that a simulated site needs; all missing ones are reported before any is started."""

from __future__ import annotations

import os
from pathlib import Path

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
    "mpicc": "libopenmpi-dev",
}


PLUGIN = "SAR_PLUGIN"
"""The environment variable with the path of a plugin that is built but not installed."""
SPANK = "SAR_SPANK"
"""The same for the SPANK plugin."""
_SPANK_LIBRARY = "sar_spank.so"


def require_everything(command: str) -> None:
    """Raises one `SarError` that names everything that `command` needs and this machine lacks."""
    if os.geteuid():
        raise SarError(f"{command} starts Slurm's daemons, which need root: run it as root")
    missing = [
        f"{program} (Debian package {package})"
        for program, package in _PROGRAMS.items()
        if not _is_installed(program, package)
    ]
    if missing:
        raise SarError(f"{command} needs {', '.join(missing)}; run: tests/install-debian-packages")
    umad2sim()
    plugin()
    spank_plugin()


def plugin() -> Path:
    """The OpenSM plugin: the file that $SAR_PLUGIN names, or else the installed one."""
    return _library(PLUGIN, LIBRARY, "opensm_bridge")


def spank_plugin() -> Path:
    """The SPANK plugin: the file that $SAR_SPANK names, or else the installed one."""
    return _library(SPANK, f"slurm*/{_SPANK_LIBRARY}", "slurm_spank")


def _library(variable: str, pattern: str, folder: str) -> Path:
    if named := os.environ.get(variable):
        path = Path(named).absolute()  # daemons run in folders of their own
        if not path.exists():
            raise SarError(f"{variable} names {path}, which does not exist: build it there")
        return path
    for path in sorted(Path("/usr/lib").glob(f"*/{pattern}")):
        return path
    raise SarError(
        f"{Path(pattern).name} is not installed in /usr/lib: run make -C {folder} install, "
        f"or set {variable} to the path of the built file"
    )


def _is_installed(program: str, package: str) -> bool:
    try:
        find_program(program, package)
    except SarError:
        return False
    return True
