"""Services: parts of the agent that a site may do without, found by entry points.

A service is a folder of `sar_agent/services/`, or another package, with a line in the group
`sar_agent.services`. The core imports none of them, and no service imports another. Where the
folder of a line is absent, all else works without a word; a folder that is there and cannot be
imported is an error that names it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any

from sar_agent.errors import InputError
from sar_agent.util.extensions import extensions, load_point, package_of

GROUP = "sar_agent.services"


@dataclass(frozen=True)
class Service:
    """What a service brings. A hook is `module:object`, imported only where it is used; "" where
    the service has none."""

    order: int
    """Services act in ascending order; ours are 10, 20, 30, 40, 50."""
    observer: str = ""
    """Makes of an agent's `Parts` a `PassObserver`, which is told of every pass."""
    quiet: str = ""
    """Makes of `Config` and `Metrics` a `QuietObserver`, which is told why no passes are made."""
    check: str = ""
    """Called by `config check` with `Config` and the `Fabric`. Returns two lists of lines on the
    files and servers that only this service reads: what they are, and what is wrong."""


@cache
def services() -> dict[str, Service]:
    """All that are installed, by name, in their order. Raises `InputError` for one that cannot be
    imported, and for two of one name."""
    found: dict[str, Service] = {}
    where: dict[str, EntryPoint] = {}
    for point in extensions(GROUP):
        if is_absent(point):
            continue
        if other := where.get(point.name):
            raise InputError(
                f"{package_of(other)} and {package_of(point)} both have a service {point.name!r}",
                remedy="uninstall one of them",
            )
        found[point.name], where[point.name] = load_point(point, "service"), point
    return dict(sorted(found.items(), key=lambda item: (item[1].order, item[0])))


def is_absent(point: EntryPoint) -> bool:
    """Whether the folder of an entry point is not there."""
    try:
        return find_spec(point.module) is None
    except ModuleNotFoundError as error:
        return f"{point.module}.".startswith(f"{error.name}.")
    except Exception:  # of the code of a package around it, which is there: loading says it
        return False


def load_hook(name: str, hook: str) -> Any:
    """The object that a hook of the service `name` names. Raises `InputError` where it cannot be
    imported."""
    try:
        return resolve_name(hook)
    except Exception as error:  # an import runs the service's code, which may raise anything
        raise InputError(
            f"{hook} of the service {name!r} cannot be loaded ({type(error).__name__}: {error})",
            remedy="repair the service, or remove its folder",
        ) from error
