"""Every configuration key: type, unit, range and default, from the typed model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from sar_agent.config.example import keys_of_section, value_text
from sar_agent.config.model import Config, description_of

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
    default: str
    """As it is written in TOML."""
    description: str


def config_entries() -> Iterator[ConfigEntry]:
    """All keys, in the order of the file."""
    for section, model in config_sections():
        schema = model.model_json_schema()["properties"]
        for key, field in keys_of_section(model):
            found = schema[key]
            default = field.get_default(call_default_factory=True)
            yield ConfigEntry(
                section,
                key,
                "path" if found.get("format") == "path" else _TYPES[found["type"]],
                next((unit for end, unit in _UNITS.items() if key.endswith(end)), ""),
                _range(found),
                " ".join(value_text(default).split()),
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
