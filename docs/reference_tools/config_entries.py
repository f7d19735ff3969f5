"""Every configuration key: type, unit, range and default, from the typed model; and the example
configuration, which has each with its default, under its description."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from pydantic import BaseModel

from sar_agent.config.model import Config, description_of
from sar_agent.config.toml_text import value_text

HEAD = """\
# The settings of sar-agent: every key with its default. Copy this file to
# /etc/sar-agent/sar-agent.toml and keep the keys that you change. Test the result with
# `sar-agent config check`.
"""

_TYPES = {
    "boolean": "boolean",
    "integer": "integer",
    "number": "number",
    "string": "string",
    "array": "list of strings",
    "object": "table of strings",
}
_UNITS = {"_seconds": "s", "_ratio": "share", "_gain": "share"}


@dataclass(frozen=True)
class ConfigEntry:
    """One key of one section."""

    section: str
    key: str
    type: str
    unit: str
    """Empty for a key without a unit."""
    range: str
    """What the value may be; empty if anything of the type."""
    toml: str
    """The default, as it is written in TOML; it may have several lines."""
    description: str

    @property
    def sentence(self) -> str:
        """The description as a sentence of its own."""
        return f"{self.description[0].upper()}{self.description[1:]}."

    @property
    def default(self) -> str:
        """The default in one line."""
        return " ".join(self.toml.split())


def config_entries() -> Iterator[ConfigEntry]:
    """All keys, in the order of the file."""
    for section, model in config_sections():
        schema = model.model_json_schema()["properties"]
        # Those of engines, which the model inherits, come last.
        keys = sorted(
            model.model_fields.items(), key=lambda item: item[0] not in model.__annotations__
        )
        for key, field in keys:
            found = schema[key]
            default = field.get_default(call_default_factory=True)
            yield ConfigEntry(
                section,
                key,
                "path" if found.get("format") == "path" else _TYPES[found["type"]],
                next((unit for end, unit in _UNITS.items() if key.endswith(end)), ""),
                _range(found),
                value_text(default),
                description_of(field),
            )


def config_sections() -> Iterator[tuple[str, type[BaseModel]]]:
    """The name and the model of each section, in the order of the file."""
    for name, field in Config.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield name, field.annotation


def _range(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f'"{value}"' for value in schema["enum"])
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    if low is not None:
        above = "above " if "exclusiveMinimum" in schema else ""
        high = schema.get("maximum")
        return f"{above}{low:g} … {high:,.12g}" if high is not None else f"{above}{low:g} or more"
    return "not empty" if schema.get("minLength") or schema.get("minItems") else ""


def example_config() -> str:
    """The text of deploy/sar-agent.toml."""
    entries = list(config_entries())
    sections = []
    for section, model in config_sections():
        lines = [*_comment(" ".join((model.__doc__ or "").split())), f"[{section}]"]
        for entry in entries:
            if entry.section == section:
                lines += _comment(entry.sentence)
                lines.append(f"{entry.key} = {entry.toml}")
        sections.append("\n".join(lines) + "\n")
    return "\n".join([HEAD, *sections])


def _comment(text: str) -> list[str]:
    return wrap(text, 100, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
