"""`[cables]`: what `sar-agent cables` and `assess` need not report."""

from __future__ import annotations

from pydantic import Field

from sar_agent.config.types import Section, Word


class CablesConfig(Section, frozen=True):
    """Cables: what reports of odd cables leave out (`sar-agent cables`, `assess`)."""

    ignore: list[Word] = Field(
        default=[],
        description="switches, ports (SLG02-04[27]), hosts, host lists and patterns (ufm-*) whose "
        "cables are as they should be",
    )
