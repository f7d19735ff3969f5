"""The example configuration: every key with its default, under its description.

`python -m sar_agent.config.example > deploy/sar-agent.toml` writes it; a test compares the two.
"""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import wrap

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sar_agent.config.model import Config, description_of

WIDTH = 100
HEAD = """\
# The settings of sar-agent: every key with its default. Copy this file to
# /etc/sar-agent/sar-agent.toml and keep the keys that you change. Test the result with
# `sar-agent config check`.
"""


def example() -> str:
    """The text of deploy/sar-agent.toml."""
    sections = [
        _section(name, field.annotation)
        for name, field in Config.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    ]
    return "\n".join([HEAD, *sections])


def _section(name: str, section: type[BaseModel]) -> str:
    lines = [*_comment(" ".join((section.__doc__ or "").split())), f"[{name}]"]
    for key, field in keys_of_section(section):
        description = description_of(field)
        lines += _comment(f"{description[0].upper()}{description[1:]}.")
        lines.append(f"{key} = {value_text(field.get_default(call_default_factory=True))}")
    return "\n".join(lines) + "\n"


def keys_of_section(section: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    """The keys in the order of the file: those of engines, which the model inherits, come last."""
    return sorted(
        section.model_fields.items(), key=lambda item: item[0] not in section.__annotations__
    )


def _comment(text: str) -> list[str]:
    return wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)


def value_text(value: object) -> str:
    """A default as TOML."""
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


if __name__ == "__main__":
    print(example(), end="")
