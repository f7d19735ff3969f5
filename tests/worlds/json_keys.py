"""JSON output compared with the reference of its keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from docs.reference_tools.json_objects import JsonKey, json_objects

OBJECTS = json_objects()


def differences(name: str, found: dict[str, Any]) -> Iterator[str]:
    """What the file and the output do not have in common."""
    listed = {key.name: key for key in OBJECTS[name]}
    yield from (f"{name}.{key} has no line" for key in found.keys() - listed.keys())
    for key in listed.values():
        if key.name not in found:
            if not key.optional:
                yield f"{name}.{key.name} is not printed"
        elif key.object:
            yield from _inside(key, found[key.name])


def _inside(key: JsonKey, value: Any) -> Iterator[str]:
    values = value if isinstance(value, list) else [value]
    for each in values:
        if each is not None:
            yield from differences(key.object, each)
