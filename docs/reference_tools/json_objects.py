"""The keys of `--json`, which `json_keys.toml` explains; a test compares it with the output."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any, NamedTuple


class JsonKey(NamedTuple):
    """One key of a JSON object."""

    name: str
    optional: bool
    """Whether the key may be missing."""
    object: str
    """The object that the value is, or that a list of it holds; empty for other values."""
    meaning: str


def json_objects() -> dict[str, tuple[JsonKey, ...]]:
    """The keys of each object. A command's name is the object that it prints; other names are those
    of objects inside."""
    text = (files("docs.reference_tools") / "json_keys.toml").read_text()
    return {name: tuple(map(_key, keys.items())) for name, keys in tomllib.loads(text).items()}


def _key(item: tuple[str, Any]) -> JsonKey:
    name, meaning = item
    inner, _, rest = meaning.rpartition("]: ") if meaning.startswith("[") else ("", "", meaning)
    return JsonKey(name.removesuffix("?"), name.endswith("?"), inner.removeprefix("["), rest)
