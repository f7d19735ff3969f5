"""Values of settings as TOML."""

from __future__ import annotations

import json
from pathlib import Path


def value_text(value: object) -> str:
    """The value of a key, as it is written in the file."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return f"{value:g}"
        case dict():
            return (
                "{" + ", ".join(f"{key} = {value_text(each)}" for key, each in value.items()) + "}"
            )
        case list():
            line = "[" + ", ".join(map(value_text, value)) + "]"
            return line if len(line) < 80 else _column(value)
        case str() if "\\" in value:
            return f"'{value}'"
        case str() | Path():
            return json.dumps(str(value))
    raise TypeError(type(value))


def _column(values: list[object]) -> str:
    return "\n".join(["[", *(f"  {value_text(each)}," for each in values), "]"])
