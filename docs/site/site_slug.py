"""Anchors of headings as GitHub makes them, so that links work in both places."""

from __future__ import annotations

import re


def slugify(heading: str, separator: str) -> str:
    """`[agent]` to `agent`, `What decides a packet's path?` to `what-decides-a-packets-path`."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", separator)
