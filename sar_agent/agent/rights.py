"""Only the agent's user may write the agent's files.

A command that runs as root leaves a lock, a history and generations behind that the service cannot
open. Then the service does not start, or does not see a hold.
"""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from sar_agent.config.model import AgentConfig
from sar_agent.errors import InputError
from sar_agent.util.kernel_cache import is_made_here

USER = "sar-agent"
"""The service's user, made by deploy/sysusers.d."""
_USUAL = AgentConfig.model_fields["state_dir"].default


def require_owner(folder: Path, command: str, variables: str = "") -> None:
    """Raises `InputError` where `folder`, in which `sar-agent COMMAND` writes, belongs to another
    user than this process's, or has yet to be made for the service's user. `variables` precede the
    command: `NAME=value `."""
    words = f"{variables}sar-agent {command}"
    try:
        owner = folder.stat().st_uid
    except FileNotFoundError:
        if folder == _USUAL and os.geteuid() == 0 and _is_user(USER):
            raise InputError(
                "is not there yet, and would belong to root",
                file=folder,
                remedy=f"make it with: install -d -o {USER} -g {USER} -m 0750 {folder}; then "
                f"sudo -u {USER} {words}",
            ) from None
        return
    except OSError:
        return  # a user who may not even look there gets the error of the first write
    if owner == os.geteuid():
        return
    name = _name(owner)
    raise InputError(
        f"belongs to {name}, and so must all that `sar-agent {command}` writes there",
        file=folder,
        remedy=f"run it as that user: sudo -u {name} {words}",
    )


def require_cache(command: str) -> None:
    """`require_owner` for compiled kernels, where `NUMBA_CACHE_DIR` says where they go."""
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if folder and not is_made_here(Path(folder)):
        require_owner(Path(folder), command, f"NUMBA_CACHE_DIR={folder} ")


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"#{uid}"
