"""Times on the command line: a whole number with its unit, such as 90m."""

from __future__ import annotations

import re

_FORM = re.compile(r"(\d{1,6})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds_of(text: str, option: str) -> float:
    """`90s`, `90m`, `2h`, `1d` in seconds. Raises `InputError`, which names the option."""
    if found := _FORM.fullmatch(text):
        return float(int(found[1]) * _SECONDS[found[2]])
    from sar_agent.errors import InputError

    raise InputError(f"{option} {text} is no time", remedy="write 90s, 90m, 2h or 1d")
