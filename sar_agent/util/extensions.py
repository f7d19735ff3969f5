"""Extension points: objects that installed packages register in an entry-point group.

The names of a group can be listed without importing any of its packages, so help texts and the
configuration list them; a package is imported only when one of its objects is used. sar-agent
registers its own objects in the same groups (pyproject.toml), so an extension from another package
is reached by the same path as ours.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from sar_agent.errors import InputError


@cache
def installed() -> Any:
    """The `EntryPoints` of all packages, looked for once: that takes 10 ms."""
    return entry_points()


def extensions(group: str) -> tuple[EntryPoint, ...]:
    """The group's entry points, in the order of their names."""
    found = installed().select(group=group)
    return tuple(sorted(found, key=lambda point: (point.name, point.value)))


def extension_names(group: str) -> tuple[str, ...]:
    """The names in `group`, sorted, each once."""
    return tuple(dict.fromkeys(point.name for point in extensions(group)))


def package_of(point: EntryPoint) -> str:
    """Name and version of the package that registers `point`, `sar-agent 0.1.0`."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"


def load_extension(group: str, name: str, what: str, usual: tuple[str, ...] = ()) -> Any:
    """The object called `name` in `group`; `what` says in messages what it is, `job source`. A
    message lists the `usual` ones where these are given, else all.

    Raises `InputError` where no package registers that name, or its package cannot be imported.
    """
    for point in extensions(group):
        if point.name == name:
            return load_point(point, what)
    known = extension_names(group)
    remedy = f"use one of {', '.join(usual or known)}"
    if usual:
        remedy += f" (`sar-agent {what}s --all` lists all)"
    if not known:
        remedy = "install a package that registers one"
    if similar := get_close_matches(name, known, 1):
        remedy = f"did you mean {similar[0]}? Or {remedy}"
    raise InputError(f"no {what} is called {name!r}", remedy=remedy)


def load_point(point: EntryPoint, what: str) -> Any:
    """The object of one entry point. Raises `InputError` where it cannot be imported."""
    try:
        return point.load()
    except Exception as error:  # an import runs the other package's code, which may raise anything
        raise InputError(
            f"the {what} {point.name!r} of {package_of(point)} cannot be loaded "
            f"({type(error).__name__}: {error})",
            remedy="repair or uninstall that package",
        ) from error
